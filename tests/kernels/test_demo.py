"""`make demo`, as it is run."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

DEMO = Path(__file__).parents[2] / "demo" / "demo.py"
KERNELS = ["grey", "blur", "sobel", "unsharp", "clamp", "linear", "linear", "linear", "softmax",
           "argmax"]  # fmt: skip


def test_the_demo(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    wrote, digits, _, *rows = done.stdout.splitlines()
    assert wrote == f"wrote {tmp_path / 'contact_sheet.png'} (1280x886)"
    assert digits.startswith("digits: 597 of 597 predictions as scikit-learn's")
    assert [row.split()[0] for row in rows[:-2]] == KERNELS
    with Image.open(tmp_path / "contact_sheet.png") as sheet:
        pixels = np.asarray(sheet.convert("L"), float)
    assert pixels.shape == (886, 1280)
    for panel in (pixels[16:443, :640], pixels[459:, 640:]):
        assert panel.std() > 20
