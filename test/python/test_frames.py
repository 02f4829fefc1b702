# SPDX-License-Identifier: MIT
"""Frames, rows and dicts by the names of their columns, as people with pandas and a CSV file use them."""
import os
import re
import subprocess
import tempfile
import unittest
import warnings

import numpy as np
import pandas as pd

import microprop as mp

IRIS = os.path.join(os.environ["SOURCE_DIR"], "examples", "iris.csv")


def people(rows=300):
    """Numbers with gaps, categories, names, dates; a target of two values."""
    r = np.random.RandomState(3)
    frame = pd.DataFrame({
        "id": np.arange(1, rows + 1), "class": r.randint(1, 4, rows), "name": [f"Person {i}, X" for i in range(rows)],
        "sex": r.choice(["male", "female"], rows),
        "age": np.where(r.rand(rows) < 0.2, np.nan, r.uniform(1, 80, rows).round(1)),
        "when": pd.date_range("1912-04-01", periods=rows, freq="D")})
    frame["survived"] = ((frame["sex"] == "female") ^ (r.rand(rows) < 0.1)).astype(int)
    return frame


class Frames(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore", mp.Note)

    def test_a_table_trains_as_the_command_line_does(self):
        frame = pd.read_csv(IRIS)
        table = mp.Table(frame)
        run = table.train()
        out = subprocess.run([os.environ["MICROPROP"], "train", IRIS, "--json", "--no-save"], check=True,
                             stdout=subprocess.PIPE)
        self.assertEqual(run.fingerprint, re.search(rb'"fingerprint": *"(\w+)"', out.stdout).group(1).decode())
        self.assertEqual(len(table.held_out), 30)
        again = mp.Run(table.network())
        again.train(table)  # also holds a fifth out
        self.assertEqual(again.use_best().fingerprint, run.fingerprint)
        self.assertEqual(mp.Run(mp.Table(IRIS).network(hidden=4)).train(mp.Table(IRIS), epochs=1).epoch, 1)
        self.assertEqual(mp.Table(frame).train(0, epochs=2).report.stopped_by, "epochs")
        auto = mp.Network.parse("group in auto input\ngroup out auto softmax output\nconnect in, true -> out\n")
        self.assertIsNotNone(mp.Run(auto, epochs=1).train(table).test_right)

    def test_models_take_frames_rows_dicts_and_files(self):
        frame = people()
        table = mp.Table(frame)
        run = table.train()
        with tempfile.TemporaryDirectory() as folder:
            path, csv = os.path.join(folder, "p.safetensors"), os.path.join(folder, "p.csv")
            run.save(path)
            frame.to_csv(csv, index=False)
            model = mp.Run.open(path)
            self.assertIn("weights of " + path, repr(model))
            result, want = model.test(frame), model.predict(frame)
            self.assertEqual(result[:5], model.test(csv)[:5])
            self.assertEqual(result.right, model.measure(frame).accuracy)
            np.testing.assert_array_equal(model.predict(csv), want)
        self.assertGreater(result.right, 0.8)
        np.testing.assert_array_equal(model.predict(frame.iloc[7]), want[7:8])
        rows = frame.drop(columns="survived").to_dict("records")
        np.testing.assert_array_equal(model.predict(rows[7]), want[7:8])
        np.testing.assert_array_equal(model.predict(rows), want)
        np.testing.assert_array_equal(model.guess(frame), want[:, 0] > 0.5)
        with self.assertRaises(mp.InputError) as caught:
            model.predict({"sex": "male"})
        self.assertIn("'class', 'age', which the model needs", caught.exception.text)
        classes = mp.Table(pd.read_csv(IRIS)).train()
        self.assertEqual(classes.guess(pd.read_csv(IRIS))[[0, -1]].tolist(), ["setosa", "virginica"])

    def test_messages_speak_of_the_frame(self):
        frame = people()
        table = mp.Table(frame)
        self.assertEqual((table.name, repr(table)), ("frame", "<Table frame: 300 rows, 7 columns, binary>"))
        self.assertTrue(any("targets=" in line for line in table.decisions), table.decisions)
        with self.assertRaises(mp.InputError) as caught:
            mp.Table(frame, targets="survivd")
        self.assertEqual((caught.exception.file, caught.exception.line), ("frame", 1))
        self.assertNotIn("frame.csv", str(caught.exception))
        run = table.train(epochs=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run.predict(frame)
        self.assertEqual([(w.filename, w.category) for w in caught], [(__file__, mp.Note)])
        self.assertTrue(str(caught[0].message).startswith("frame: columns 'id', 'name', 'when' not used"))

    def test_frames_that_are_no_data(self):
        frame = people()
        for columns, why in ((["age"], "column 'age' has missing values"), (["when"], "column 'when' holds times")):
            with self.assertRaisesRegex(ValueError, why):
                mp.Data(frame[columns], frame["survived"])
        with self.assertWarnsRegex(mp.Note, "column 'name' has 300 different values"):
            mp.Data(frame[["name"]], frame["survived"])
        with self.assertRaisesRegex(ValueError, "give classes as labels="):
            mp.Data(frame[["id"]], frame["sex"])
        twice = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
        np.testing.assert_array_equal(mp.Data(twice, [0, 1])[1][0], [3, 4])
        with self.assertRaisesRegex(TypeError, "Table"):
            mp.Run(mp.Network.layers([2, 2, 1])).train(frame)
        with self.assertRaisesRegex(TypeError, "did you mean 'targets'"):
            mp.Table(frame, target="survived")
        with self.assertRaisesRegex(TypeError, "expected a path, a pandas frame or dicts, not ndarray"):
            mp.Table(np.ones((3, 2)))
        with self.assertRaisesRegex(mp.InputError, r"x\[None\]"):
            mp.Run(mp.Network.layers([3, 2, 1])).predict(np.ones(3))
        with self.assertRaises(mp.InputError):
            mp.Network.layers([3, 2, 1], hidden="tahn")


if __name__ == "__main__":
    unittest.main()
