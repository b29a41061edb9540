"""The shipped kernels that have recipes for GPUs: built for all dtypes."""

import re

import pytest

from gen.lower.variants import suffix

from .made import ELEMENTWISE, LEVEL, SHIPPED, built, dtypes_of


def test_these_are_some() -> None:
    """They are found by their specs."""
    assert {"exp", "gelu", "tanh"} <= {*ELEMENTWISE} <= {*SHIPPED}
    others = {"blur", "layer_norm", "matmul", "matvec", "softmax", "sum", "transpose"}
    assert others <= {*SHIPPED} - {*ELEMENTWISE}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_kernel_has_code_for_gpus(name: str) -> None:
    device, host = built(name)
    for dtypes in dtypes_of(name):
        assert f"ts_{name}_{suffix(dtypes)}_0_launch0" in device
        assert f"extern const ts_variant ts_{name}_{suffix(dtypes)}_{LEVEL}[" in host
    kinds = [{d.value for d in dtypes.values()} for dtypes in dtypes_of(name)]
    assert ({"float32"} in kinds and {"float64"} in kinds) or name == "histogram"


def test_variants_before_the_last_are_for_the_strides_that_they_are_quick_with() -> None:
    rows = re.findall(r"UINT64_C\((\d+)\), \"(\d)\"", built("sum")[1])
    along = [("2", "0"), ("2", "1"), ("2", "2")]  # x has stride 1 along n
    assert rows[:5] == [*along, ("1", "3"), ("0", "4")]  # and along m


def test_tiles_of_a_matrix_product_have_no_guards_inside() -> None:
    """Past the ends there are zeros to read, and sums that nothing takes; the last strip is apart:
    its terms end early.
    """
    device, _ = built("matmul")
    assert "float c_tile[16];" in device
    whole, rest = device.partition("for (index_t c_lr_2")[2].partition("for (index_t c_rest")[::2]
    inner = whole.partition("ts_barrier")[0]
    assert "ts_fma_f32_s(" in inner and "if (" not in inner
    assert "ts_fma_f32_s(" in rest
