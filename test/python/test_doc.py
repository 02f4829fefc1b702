# SPDX-License-Identifier: MIT
"""Examples of doc/python.md and python/README.md: blocks of a page run in order, in one namespace; a line `>>> X` must
print what follows it."""
import contextlib
import doctest
import os
import re
import shutil
import tempfile
import unittest
import warnings

SOURCE = os.environ["SOURCE_DIR"]


class Pages(unittest.TestCase):
    maxDiff = None

    def run_page(self, page):
        with open(os.path.join(SOURCE, page), encoding="utf-8") as f:
            blocks = re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)
        self.assertTrue(blocks)
        names = {"__name__": "__main__"}
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shutil.copytree(os.path.join(SOURCE, "examples"), os.path.join(folder, "examples"))
            os.chdir(folder)
            try:
                for i, block in enumerate(blocks):
                    if not block.startswith(">>>"):
                        with contextlib.redirect_stdout(None):
                            exec(compile(block, f"{page}, block {i + 1}", "exec"), names)
                        continue
                    test = doctest.DocTestParser().get_doctest(block, names, f"{page}, block {i + 1}", page, 0)
                    report = []
                    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append, clear_globs=False)
                    self.assertEqual("".join(report), "")
                    names.update(test.globs)
            finally:
                os.chdir(before)

    def test_manual(self):
        self.run_page("doc/python.md")

    def test_readme(self):
        self.run_page("python/README.md")


if __name__ == "__main__":
    unittest.main()
