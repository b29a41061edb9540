"""No mask is loaded from more bytes of the stack than were stored."""

import shutil

import pytest

import tilesmith as ts
from build_tools.check_masks import main, wide_loads

LISTING = """\
0000000000001000 <narrow>:
    1000:\tkmovb  %k2,0x4(%rsp)
    1004:\tkmovd  0x4(%rsp),%k2
0000000000001010 <to_a_register>:
    1010:\tkmovb  %k2,(%rsp)
    1014:\tmov    (%rsp),%eax
0000000000001020 <equal>:
    1020:\tkmovw  %k2,-0x2(%rbp)
    1024:\tkmovw  -0x2(%rbp),%k2
    1028:\tmovzwl -0x2(%rbp),%eax
0000000000001030 <stored_again>:
    1030:\tkmovb  %k2,0x4(%rsp)
    1034:\tmov    %eax,0x4(%rsp)
    1038:\tkmovd  0x4(%rsp),%k2
0000000000001040 <another_function>:
    1040:\tkmovd  0x4(%rsp),%k2
0000000000001050 <a_pointer>:
    1050:\tkmovb  %k2,(%rsp)
    1054:\tmov    (%rsp),%rax
"""


def test_loads_of_more_than_was_stored_are_found() -> None:
    assert [name for name, _ in wide_loads(LISTING.splitlines())] == ["narrow", "to_a_register"]


def test_the_extension_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("no objdump")
    assert main([ts._kernels.__file__]) == 0, capsys.readouterr().out
