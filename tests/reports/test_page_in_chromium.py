"""The page in a real browser: on a desk and on a phone, light and dark."""

import html
import json
import re
import shutil
import subprocess

import pytest

from rllib_impass.reports.report import write_report
from synthetic_runs import actor_study, comparison

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium here (Debian: apt install chromium)"
)

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-logging=stderr",
]
DARK = "--blink-settings=preferredColorScheme=0"
PHONE = 390

# A window cannot be as narrow as a phone, but a frame can.
FRAME = """<!DOCTYPE html><style>body {{ margin: 0; }}</style>
<iframe style="width: {width}px; height: 800px; border: 0" srcdoc="{page}"></iframe>
<pre id="found"></pre>
<script>
document.querySelector("iframe").onload = (event) => {{
  const page = event.target.contentDocument;
  for (const details of page.querySelectorAll("details")) details.open = true;
  const root = page.documentElement;
  const box = (e) => e.getBoundingClientRect();
  const style = (selector) => page.defaultView.getComputedStyle(
    page.querySelector(selector));
  const ids = [...page.querySelectorAll("[id]")].map((e) => e.id);
  document.getElementById("found").textContent = JSON.stringify({{
    width: root.clientWidth,
    scrollWidth: root.scrollWidth,
    figures: [...page.querySelectorAll(".panel svg")].map(
      (e) => [box(e).width, box(e).height]),
    drawn: [...page.querySelectorAll(".panel svg g")].filter(
      (e) => box(e).width > 0).length,
    letters: Math.min(...[...page.querySelectorAll(".panel text")].filter(
      (e) => e.textContent.trim()).map((e) => box(e).height)),
    background: style("body").backgroundColor,
    ink: style("h1").color,
    text: style(".panel svg text").fill,
    repeated: ids.filter((id, number) => ids.indexOf(id) !== number),
  }});
}};
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    comparison(folder / "comparison")
    actor_study(folder / "actors")
    write_report([folder], folder / "out")
    return folder / "out" / "index.html"


def open_page(page, folder, width, *flags):
    """What a script finds in the page, and what the browser logs."""
    frame = folder / "frame.html"
    text = html.escape(page.read_text())
    frame.write_text(FRAME.format(width=width, page=text))
    done = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            *flags,
            f"--user-data-dir={folder / 'profile'}",
            "--window-size=1280,900",
            "--virtual-time-budget=10000",
            "--dump-dom",
            frame.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(html.unescape(found[1])), done.stderr


def luminance(colour):
    """Relative luminance (WCAG) of ``rgb(r, g, b)``."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("flags", [(), (DARK,)], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, PHONE])
def test_the_page_can_be_read(page, tmp_path, width, flags):
    found, log = open_page(page, tmp_path, width, *flags)
    assert "CONSOLE" not in log
    assert found["width"] > width - 20
    assert found["scrollWidth"] <= found["width"]
    assert len(found["figures"]) > 15
    for figure_width, figure_height in found["figures"]:
        assert 300 < figure_width <= width
        assert figure_height > 80
    assert found["drawn"] > 500
    # The smallest, of what is said of the seeds.
    assert found["letters"] > 8
    assert found["repeated"] == []
    is_dark = luminance(found["background"]) < 0.1
    assert is_dark == bool(flags)
    for colour in ("ink", "text"):
        assert contrast(found[colour], found["background"]) > 7


def test_what_goes_wrong_in_a_page_is_noticed(page, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text() + "<script>missing()</script>")
    _, log = open_page(broken, tmp_path, PHONE)
    assert "CONSOLE" in log
    assert "missing is not defined" in log
