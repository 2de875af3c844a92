#!/usr/bin/env python3
"""Makes the picture of README.md: runs its session with a binary, and photographs the page of `trackway explain --html`.

    scripts/readme/picture.py README.md TRACKWAY PICTURE.webp

It needs Chromium (Debian: `apt-get install chromium fonts-inter`); CHROMIUM names another program.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check_start import blocks, commands, copy_scripts

# What the picture shows of the page, in pixels of CSS, and how many pixels of the picture are one of those.
WIDTH, HEIGHT, SCALE = 1180, 980, 1.4
BYTES_MAX = 100_000
# A frame around the page, which fades where the picture ends.
STYLE = """<style>
html{background:#fff}
body{font-family:Inter,system-ui,sans-serif;position:relative;overflow:hidden;max-width:none;height:calc(100vh - 2px);margin:1px;padding:1.5rem 2rem;
border:1px solid #d0d7de;border-radius:12px}
body::after{content:"";position:absolute;inset:auto 0 0;height:3rem;background:linear-gradient(transparent,#fff)}
</style>"""


def run_session(readme: Path, work: Path, variables: dict[str, str]) -> Path:
    """Runs the first block of commands; the page of its run."""
    copy_scripts(readme, work)
    shown = [command for command, _ in commands(blocks(readme)[0])]
    for command in [*shown, "trackway explain last --html page.html"]:
        subprocess.run(["sh", "-c", command], cwd=work, env=variables, check=False)
    return work / "page.html"


def photograph(page: Path, picture: Path, profile: Path) -> None:
    page.write_text(page.read_text().replace("</head>", f"{STYLE}</head>", 1))
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or sys.exit("Chromium is not installed")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
    size = [f"--window-size={WIDTH},{HEIGHT}", f"--force-device-scale-factor={SCALE}"]
    subprocess.run(
        [program, *options, *size, f"--screenshot={picture}", page.as_uri()], check=True, timeout=120, stderr=subprocess.DEVNULL
    )


def main() -> None:
    readme, binary, picture = Path(sys.argv[1]), Path(sys.argv[2]).resolve(), Path(sys.argv[3]).absolute()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        work, programs = folder / "project", folder / "bin"
        work.mkdir()
        programs.mkdir()
        (programs / "trackway").symlink_to(binary)
        (programs / "python").symlink_to(sys.executable)
        variables = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", "NO_COLOR": "1"}
        photograph(run_session(readme, work, variables), picture, folder / "chromium")
    size = picture.stat().st_size
    print(f"{picture}: {size} bytes")
    if size > BYTES_MAX:
        sys.exit(f"it is larger than {BYTES_MAX} bytes")


if __name__ == "__main__":
    main()
