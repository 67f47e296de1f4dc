#!/usr/bin/env python3
"""Checks pages that `blockyard --html` wrote, in a headless Chromium.

    ci/check-page.py FOLDER FILE...

Each page must be smaller than 300 KB, request nothing but itself, run no script, obey its own
policy, and have no serious finding of axe-core, in light and in dark. Each drawing must be
well-formed XML (xmllint). On screens of 1200 and of 400 pixels, no table and no text of a drawing
is clipped, and no letter is too small to read. Screenshots go to FOLDER. Needs the Python packages
playwright and axe-playwright-python, and the programs chromium and xmllint.
"""

import os
import re
import shutil
import subprocess
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

SIZE_MAX = 300_000
SERIOUS = ("serious", "critical")
WIDTHS = (1200, 400)
# The tables that are wider than their place, the texts that leave their drawing, and the height of
# the smallest letters.
MEASURE = """() => {
    const wider = [...document.querySelectorAll(".wide")].filter((of) => of.scrollWidth > of.clientWidth + 1);
    const cut = [], sizes = [];
    for (const svg of document.querySelectorAll("svg")) {
        const place = svg.getBoundingClientRect();
        for (const text of svg.querySelectorAll("text")) {
            const of = text.getBoundingClientRect();
            if (of.width && (of.left < place.left - 1 || of.right > place.right + 1)) cut.push(text.textContent);
            sizes.push(parseFloat(getComputedStyle(text).fontSize) * place.width / svg.viewBox.baseVal.width);
        }
    }
    return [wider.length, cut, Math.min(...sizes), document.documentElement.scrollWidth - innerWidth];
}"""
LETTERS_MIN = 10


def faults_of_text(path):
    text = open(path, encoding="utf-8").read()
    size = len(text.encode())
    if size >= SIZE_MAX:
        yield f"it has {size} bytes"
    if "<script" in text:
        yield "it has a script"
    drawings = re.findall(r"<svg.*?</svg>", text, flags=re.S)
    if not drawings:
        yield "it has no drawing"
    for at, drawing in enumerate(drawings):
        checked = subprocess.run(["xmllint", "--noout", "-"], input=drawing.encode(), capture_output=True)
        if checked.returncode != 0:
            yield f"drawing {at}: {checked.stderr.decode().splitlines()[0]}"


def faults_in_browser(browser, path, scheme, picture):
    # axe-core is a script, which the page's policy forbids: the look without it checks the policy.
    url = "file://" + os.path.abspath(path)
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1000, "height": 900})
    page = context.new_page()
    requests, words = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: words.append(message.text))
    page.goto(url)
    page.screenshot(path=picture, full_page=True)
    styled = page.evaluate("getComputedStyle(document.body).maxWidth")
    context.close()
    if requests != [url]:
        yield f"it requests {requests}"
    if words:
        yield f"the console says {words}"
    if styled != "960px":
        yield f"its style sheet has no effect: the body is at most {styled} wide"
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(url)
    for finding in Axe().run(page).response["violations"]:
        if finding["impact"] in SERIOUS:
            where = finding["nodes"][0]["target"]
            yield f"axe-core: {finding['id']} ({finding['help']}) at {where}"
    context.close()


def faults_of_width(browser, path, width, picture):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto("file://" + os.path.abspath(path))
    page.screenshot(path=picture, full_page=True)
    wider, cut, letters, beyond = page.evaluate(MEASURE)
    context.close()
    if wider:
        yield f"at {width} pixels {wider} tables are clipped"
    if cut:
        yield f"at {width} pixels these texts leave their drawings: {cut[:5]}"
    if letters < LETTERS_MIN:
        yield f"at {width} pixels there are letters of {letters:.1f} pixels"
    if beyond > 0:
        yield f"at {width} pixels the page is {beyond} pixels too wide"


def main(folder, paths):
    os.makedirs(folder, exist_ok=True)
    count = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for path in paths:
            name = os.path.splitext(os.path.basename(path))[0]
            faults = list(faults_of_text(path))
            for scheme in ("light", "dark"):
                picture = os.path.join(folder, f"{name}-{scheme}.png")
                faults += faults_in_browser(browser, path, scheme, picture)
            for width in WIDTHS:
                picture = os.path.join(folder, f"{name}-{width}.png")
                faults += faults_of_width(browser, path, width, picture)
            for fault in faults:
                print(f"{path}: {fault}")
            count += len(faults)
        browser.close()
    print(f"{len(paths)} pages, {count} faults")
    return 1 if count else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
