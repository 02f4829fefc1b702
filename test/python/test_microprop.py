# SPDX-License-Identifier: MIT
"""The package against the library: networks, data, runs, tables, errors. Run by test/check/python."""
import ctypes
import json
import os
import pickle
import signal
import subprocess
import tempfile
import threading
import unittest
import warnings

import numpy as np

import microprop as mp
from microprop import _library, gf11

SOURCE = os.environ["SOURCE_DIR"]
LETTERS = "758a46f7bbe022e210edc0b9e808eff1"
XOR = (np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype="f4"), np.array([[0], [1], [1], [0]], dtype="f4"))


def example(name):
    return os.path.join(SOURCE, "examples", name)


def small(cases=60, inputs=5, seed=3):
    r = np.random.RandomState(seed)
    x = r.randn(cases, inputs).astype("f4")
    x[r.rand(cases, inputs) < 0.5] = 0
    return x, (x.sum(axis=1, keepdims=True) > 0).astype("f4")


def fingerprint(data, network=None, **options):
    run = mp.Run(network or mp.Network.layers([5, 6, 1]), epochs=3, **options)
    run.train(data)
    return run.fingerprint


class Layout(unittest.TestCase):
    def test_structs_are_those_of_the_headers(self):
        structs = [c for n, c in vars(_library).items() if n.startswith("mp_") and isinstance(c, type)]
        self.assertGreater(len(structs), 15)
        lines = ["#include <stdio.h>", "#include <stddef.h>", "#include <microprop.h>"]
        headers = ("data.h", "export.h", "gf11.h", "predict.h", "restarts.h", "table.h")
        lines += [f"#include <microprop/{h}>" for h in headers]
        lines.append("int main(void) {")
        want, sizes = [], []
        for s in structs:
            lines.append(f'fprintf(stderr, "%zu\\n", sizeof({s.__name__}));')
            sizes.append(ctypes.sizeof(s))
            for name, _ in s._fields_:
                lines.append(f'printf("%zu\\n", offsetof({s.__name__}, {name}));')
                want.append(getattr(s, name).offset)
        lines.append("}")
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "layout.c")
            with open(source, "w") as f:
                f.write("\n".join(lines))
            program = os.path.join(folder, "layout")
            subprocess.run([os.environ.get("CC", "cc"), "-I", os.path.join(SOURCE, "include"), source, "-o", program],
                           check=True)
            ran = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual([int(n) for n in ran.stdout.split()], want)
        for struct, size, known in zip(structs, ran.stderr.split(), sizes):  # structs may grow
            self.assertGreaterEqual(int(size), known, struct)

    def test_versions_agree(self):
        self.assertEqual(mp.build()["version"], mp.__version__)
        with open(os.path.join(SOURCE, "python", "pyproject.toml")) as f:
            self.assertIn(f'version = "{mp.__version__}"', f.read())


class Networks(unittest.TestCase):
    def test_built_and_parsed_are_the_same(self):
        built = mp.Network().group("in", 3, role="input").group("h", 4, "tanh").group("m", 4, role="context")
        built.group("out", 2, "softmax", "output").connect(["in", "m", "true"], "h", weights=(-0.5, 0.5))
        built.connect(["h", "true"], "out", rate=0.5).connect("in[0]", "out", frozen=True).copy("h", "m", start=0.25)
        built.train(rate=0.01, batch="all", shuffle=False)
        text = """group in 3 input
group h 4 tanh
group m 4 context
group out 2 softmax output
connect in, m, true -> h weights -0.5 0.5
connect h, true -> out rate 0.5
connect in[0] -> out frozen
copy h -> m start 0.25
train rate 0.01 batch all shuffle off
"""
        parsed = mp.Network.parse(text)
        self.assertEqual(built.text, parsed.text)
        self.assertEqual(built.fingerprint, parsed.fingerprint)
        self.assertEqual(pickle.loads(pickle.dumps(built)).text, built.text)
        self.assertEqual([g.units for g in built.groups], [3, 4, 4, 2])
        self.assertEqual(sum(b.connections for b in built.blocks), built.connections)
        self.assertIn("<table>", built._repr_html_())
        self.assertIn("level 1", built.show("plan"))

    def test_errors_have_place_and_remedy(self):
        with self.assertRaises(mp.InputError) as caught:
            mp.Network.parse("group in 2 input\ngroup out 1 output\nconnect inn, true -> out\nconnect in -> uot\n",
                             "n.topo")
        e = caught.exception
        self.assertEqual((e.file, e.line, e.column, len(e.messages)), ("n.topo", 3, 9, 2))
        self.assertEqual(e.remedy, "did you mean 'in'?")
        self.assertIn("n.topo:4:15: there is no group 'uot'", str(e))
        self.assertIsInstance(e, ValueError)
        self.assertEqual(pickle.loads(pickle.dumps(e)).line, 3)
        with self.assertRaises(mp.InputError) as caught:
            mp.Network("/no/such/file.topo")
        self.assertIn("/no/such/file.topo", str(caught.exception))
        with self.assertRaises(mp.InputError) as caught:
            mp.Run(mp.Network.layers([2, 2, 1]), rat=1)
        self.assertIn("rate", caught.exception.remedy)

    def test_sizes_of_the_data(self):
        net = mp.Network.parse("group in auto input\ngroup out auto output\nconnect in, true -> out\ntrain epochs 2\n")
        run = mp.Run(net, rate=0.1)
        run.train(XOR)
        self.assertEqual((net.inputs, net.outputs, run["rate"]), (2, 1, "0.1"))


class DataSets(unittest.TestCase):
    def test_all_kinds_give_the_same_bits(self):
        import pandas
        import scipy.sparse
        x, y = small()
        want = fingerprint(mp.Data(x, y))
        self.assertEqual(fingerprint((x.astype("f8"), y.astype("i8"))), want)
        self.assertEqual(fingerprint(mp.Data(np.asfortranarray(x), y.ravel())), want)
        self.assertEqual(fingerprint(mp.Data(x.astype(">f4"), y.astype(bool))), want)
        self.assertEqual(fingerprint(mp.Data(scipy.sparse.csr_matrix(x), y)), want)
        self.assertEqual(fingerprint(mp.Data(scipy.sparse.coo_matrix(x), y)), want)
        frame = pandas.DataFrame(x, columns=list("abcde"))
        self.assertEqual(fingerprint(mp.Data(frame, pandas.Series(y.ravel(), name="sign"))), want)
        self.assertEqual(fingerprint(mp.Data(x, y, weight=np.ones(60), mask=np.ones((60, 1)))), want)
        self.assertNotEqual(fingerprint(mp.Data(x, y, weight=np.arange(60))), want)
        nan = y.copy()
        nan[7] = np.nan
        mask = np.ones_like(y)
        mask[7] = 0
        self.assertEqual(fingerprint(mp.Data(x, nan)), fingerprint(mp.Data(x, y, mask=mask)))

    def test_arrays_are_not_copied(self):
        x, y = small()
        data = mp.Data(x, y)
        self.assertEqual(data._handle.keeps[1].x, x.ctypes.data)
        self.assertEqual(data._handle.keeps[1].y, y.ctypes.data)
        np.testing.assert_array_equal(data.arrays()[0], x)
        np.testing.assert_array_equal(data[-1][0], x[-1])
        self.assertEqual((data.shape, len(data), mp.Data.open("make:xor").shape), ((60, 5, 1), 60, (4, 2, 1)))

    def test_labels_names_frames(self):
        import pandas
        frame = pandas.DataFrame({"a": [1.0, 2, 3], "c": ["red", "blue", "red"]})
        data = mp.Data(frame, labels=pandas.Series(["x", "y", "x"], name="kind"), names=["n0", "n1", "n2"])
        self.assertEqual((data.inputs, data.targets, data.classes, data.kind), (3, 2, ["x", "y"], "classes"))
        np.testing.assert_array_equal(data[1][0], [2, 1, 0])
        self.assertEqual((data.name(1), data.guess([0.2, 0.7])), ("n1", "y"))
        self.assertEqual(data.info.class_cases, {"x": 2, "y": 1})
        self.assertIn("class x", data._repr_html_())
        with self.assertRaises(ValueError):
            mp.Data(frame, labels=["x", "y", "z"], classes=["x", "y"])

    def test_sequences(self):
        parts = [small(4, 2)[0], small(3, 2)[0]]
        targets = [np.zeros((4, 1)), np.ones((3, 1))]
        data = mp.Data(parts, targets)
        self.assertEqual((len(data), data.info.sequences), (7, 2))
        np.testing.assert_array_equal(data[4][0], parts[1][0])
        elman = mp.Network().group("i", 2, role="input").group("h", 3).group("m", 3, role="context")
        elman.group("o", 1, role="output").connect(["i", "m", "true"], "h").connect(["h", "true"], "o").copy("h", "m")
        joined = mp.Data(np.concatenate(parts), np.concatenate(targets), sequences=[0, 4, 7])
        self.assertEqual(fingerprint(data, elman), fingerprint(joined, elman))
        run = mp.Run(elman)
        want, steps = run.predict(data), run.predictor()
        for begin, part in zip((0, 4), parts):
            steps.reset()
            for i, x in enumerate(part):
                np.testing.assert_array_equal(steps.step(x), want[begin + i])
        other = mp.Run(elman, target="ref").predictor()
        with self.assertRaises(mp.InputError) as caught:
            other.step(parts[0][0])
        self.assertIn("target cpu only", caught.exception.text)

    def test_wrong_data_is_refused(self):
        x, y = small()
        bad = x.copy()
        bad[3, 2] = np.inf
        with self.assertRaises(mp.InputError) as caught:
            mp.Data(bad, y)
        self.assertIn("input 2 of case 3", caught.exception.text)
        for kw in (dict(y=y[:5]), dict(y=y, weight=[1]), dict(y=y, labels=y), dict(names=["a"]),
                   dict(input_names=["a"])):
            with self.assertRaises(ValueError):
                mp.Data(x, **kw)
        with self.assertRaises(mp.InputError):
            mp.Data(x, y, sequences=[0, 5])
        with self.assertRaises(TypeError):
            mp.Data.open("x.csv", colour="red")

    def test_files_split_scale(self):
        data = mp.Data.open("make:spirals")
        first, rest = data.split(0.75, seed=3)
        self.assertEqual(len(first) + len(rest), len(data))
        first.scale("zscore", also=rest)
        self.assertEqual(rest.info.scale, "zscore")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s.npz")
            first.save(path)
            np.testing.assert_array_equal(mp.Data.open(path).arrays()[1], first.arrays()[1])
        with self.assertRaises(mp.InputError):
            first.scale("sideways")


class Runs(unittest.TestCase):
    def test_letters_have_the_fingerprint_of_the_command_line(self):
        run = mp.Run(example("letters.topo"))
        report = run.train()
        self.assertEqual((report.fingerprint, run.fingerprint), (LETTERS, LETTERS))
        self.assertEqual((report.stopped_by, report.solved, report.epoch), ("until", True, 14))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "letters.safetensors")
            run.save(path)
            out = subprocess.run([os.environ["MICROPROP"], "test", path, "make:letters", "--json"], check=True,
                                 stdout=subprocess.PIPE).stdout.decode()
            self.assertEqual(json.loads(out)["right"], run.test("make:letters").right)
            self.assertEqual(mp.Run.open(path).fingerprint, LETTERS)

    def test_resume_gives_the_same_bits(self):
        data = mp.Data(*small())
        want = fingerprint(data)
        run = mp.Run(mp.Network.layers([5, 6, 1]), epochs=1)
        run.train(data)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.safetensors")
            run.save(path)
            again = mp.Run(mp.Network.layers([5, 6, 1])).resume(path)
        copy = pickle.loads(pickle.dumps(run))
        for r in (run, again, copy):
            r.train(data, epochs=3)
            self.assertEqual(r.fingerprint, want)

    def test_callbacks(self):
        data, seen = mp.Data(*small()), []
        run = mp.Run(mp.Network.layers([5, 6, 1]), epochs=10, report=1)
        last = run.train(data, test=data, callback=lambda r: seen.append(r) or r.epoch == 4)
        self.assertEqual(([r.epoch for r in seen], last.epoch, last.stopped_by), ([1, 2, 3, 4, 4], 4, "signal"))
        self.assertIsNotNone(last.test_error)
        with self.assertRaises(ZeroDivisionError):
            run.train(data, callback=lambda r: 1 / 0)
        self.assertEqual(run.train(data, epochs=10).epoch, 10)
        self.assertEqual(list(run.curve.epoch), list(range(6, 11)))
        self.assertTrue(np.isnan(run.curve.test_error).all())  # the last training had no test data
        self.assertIn("<svg", run._repr_html_())
        self.assertTrue(run._repr_svg_().startswith("<svg"))

    def test_reports_as_an_iterator(self):
        data = mp.Data(*small())
        want = fingerprint(data)
        run = mp.Run(mp.Network.layers([5, 6, 1]), epochs=3)
        reports = list(run.reports(data))
        self.assertEqual(([r.epoch for r in reports], reports[-1].fingerprint), ([1, 2, 3], want))
        run = mp.Run(mp.Network.layers([5, 6, 1]), epochs=10**9)
        for report in run.reports(data):
            if report.epoch == 2:
                weights = run.weights
                break
        self.assertEqual(weights.shape, (43,))
        np.testing.assert_array_equal(run.weights, weights)
        self.assertGreater(run.test(data).error, 0)
        self.assertEqual(run.train(data, epochs=run.report.epoch + 1).stopped_by, "epochs")
        with self.assertRaises(mp.InputError):
            list(mp.Run(mp.Network.layers([4, 6, 1])).reports(data))

    def test_ctrl_c_stops_after_an_update(self):
        data = mp.Data(*small())
        run = mp.Run(mp.Network.layers([5, 6, 1]), epochs=10**9, report=1)
        before = signal.getsignal(signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            run.train(data, callback=lambda r: r.epoch == 5 and os.kill(os.getpid(), signal.SIGINT))
        self.assertIs(signal.getsignal(signal.SIGINT), before)
        self.assertEqual(run.report.stopped_by, "signal")
        epochs = run.report.epoch
        self.assertGreaterEqual(epochs, 5)
        again = mp.Run(mp.Network.layers([5, 6, 1]), epochs=epochs + 2)
        again.train(data)
        run.train(data, epochs=epochs + 2)
        self.assertEqual(run.fingerprint, again.fingerprint)

    def test_the_gil_is_released(self):
        data = mp.Data(*small())
        run = mp.Run(mp.Network.layers([5, 6, 1]), epochs=10**9)
        worker = threading.Thread(target=run.train, args=(data,))
        worker.start()
        run.stop()  # never reached if the thread held it
        while worker.is_alive():
            run.stop()
            worker.join(0.01)
        self.assertEqual(run.report.stopped_by, "signal")

    def test_outputs(self):
        x, y = small()
        data = mp.Data(x, y)
        run = mp.Run(mp.Network.layers([5, 6, 1], hidden="tanh"), epochs=30)
        run.train(data)
        out = run.predict(x)
        self.assertEqual(out.shape, (60, 1))
        result = run.test(data)
        self.assertAlmostEqual(result.right, np.mean((out > 0.5) == (y > 0.5)))
        self.assertAlmostEqual(run.measure(data).accuracy, result.right)
        self.assertIn("<svg", run.figure("confusion"))
        hidden = run.activations(x, "hidden")
        w = run.weights
        first = w[:36].reshape(6, 6)
        np.testing.assert_allclose(hidden, np.tanh(first[:, 0] + x @ first[:, 1:].T), atol=1e-6)
        predict = run.predictor()
        for i in range(60):
            np.testing.assert_array_equal(predict(x[i]), out[i])
        run.weights = np.zeros_like(w)
        np.testing.assert_array_equal(run.predict(x), np.full((60, 1), 0.5))
        np.testing.assert_array_equal(predict(x[7]), out[7])
        with self.assertRaises(mp.InputError):
            run.weights = w[1:]
        with self.assertRaises(mp.InputError):
            run.activations(x, "hiden")
        for call in (run.test, run.measure):
            with self.assertRaises(TypeError):
                call(x)
            with self.assertRaises(mp.InputError) as caught:
                call((x,))
            self.assertIn("no targets", caught.exception.text)

    def test_threads_targets_and_options(self):
        data = mp.Data(*small(600))
        self.assertEqual(fingerprint(data, threads=1), fingerprint(data, threads=2))
        self.assertIn("ref", mp.targets())
        run = mp.Run(mp.Network.layers([5, 6, 1]), target="ref", epochs=2)
        self.assertEqual(run.train(data).target, "ref")
        gf11 = mp.Run(mp.Network.layers([5, 6, 1], hidden="sigmoid"), target="gf11", epochs=1, batch="all",
                      rule="momentum")
        self.assertEqual(gf11.train(data).target, "gf11")
        self.assertIsInstance(gf11.figures, dict)
        self.assertEqual(mp.options()["rule"]["choices"][-1], "adam")
        self.assertEqual(mp.Run(mp.Network.layers([5, 6, 1]), max_iter=7)["epochs"], "7")  # words of other programs
        with self.assertRaises(ValueError):
            mp.Network.layers([5])
        with self.assertRaises(ValueError):
            mp.tune(example("iris.csv"), trials=0)
        with self.assertRaises(KeyError):
            run["colour"]
        with self.assertRaises(mp.InputError):
            mp.Run(mp.Network.layers([5, 6, 1]), target="abacus").train(data)

    def test_exports(self):
        x, y = small()
        run = mp.Run(mp.Network.layers([5, 6, 1], hidden="tanh"), epochs=2)
        run.train((x, y))
        with tempfile.TemporaryDirectory() as folder:
            done = run.export(os.path.join(folder, "net.c"))
            self.assertEqual((done["format"], done["inputs"], os.path.basename(done["second"])), ("c", 5, "net.h"))
            done = run.export(os.path.join(folder, "net8.c"), calibration=mp.Data(x, y))
            self.assertEqual(done["calibration_cases"], 60)
            sizes = []
            for plain in (False, True):
                run.export(os.path.join(folder, "net.onnx"), plain=plain)
                sizes.append(os.path.getsize(os.path.join(folder, "net.onnx")))
            self.assertLess(sizes[1], sizes[0])
            np.testing.assert_array_equal(mp.Run.open(os.path.join(folder, "net.onnx")).predict(x), run.predict(x))
            run.export(os.path.join(folder, "net.npz"))
            self.assertTrue(len(np.load(os.path.join(folder, "net.npz")).files))
            run.export(os.path.join(folder, "net.net"), "snns")
            with self.assertRaises(mp.InputError):
                run.export(os.path.join(folder, "net.soup"))

    def test_restarts(self):
        run, seen = mp.Run(example("xor.topo")), []
        found = run.restarts(count=40, progress=lambda done, of: seen.append(done) and False)
        self.assertEqual((found.count, len(found.seeds)), (40, 40))
        self.assertEqual(run.fingerprint, found.best.fingerprint)
        self.assertTrue(found.best.solved)

    def test_notes_are_warnings(self):
        net = mp.Network.parse("group i 2 input\ngroup spare 2 input\ngroup o 1 output\nconnect i, true -> o\n".replace(
            "group spare 2 input\n", "group h 2\ngroup m 2 context\n").replace(
            "connect i, true -> o\n", "connect i, m, true -> h\nconnect h -> o\ncopy h -> m\n"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mp.Run(net, epochs=1).train(XOR)
        self.assertTrue(any(issubclass(w.category, mp.Note) and "sequence" in str(w.message) for w in caught))


class Workbench(unittest.TestCase):
    AXPY = "load s[300] -> a\nload s[100] -> x\nload s[200] -> y\nfmul a, x -> p\nfadd p, y -> z\nstore z -> s[200]\n"

    def test_values_in_and_out(self):
        r = gf11.schedule(self.AXPY, "axpy", processors=3, set=["sram:300=2", "sram:200=10"])
        self.assertEqual((r.name, r.processors, r.cycle, r.ended, r.spills), ("axpy", 3, 0, False, 0))
        self.assertTrue(r.optimal and r.bound == r.cycles)
        r.write("sram:100", np.array([[1.5], [2], [3]])).run()
        self.assertTrue(r.ended)
        self.assertEqual(r.read("sram:200").tolist(), [[13], [14], [16]])
        self.assertEqual(r.read("sram:200@1", "uint32").tolist(), [[0x41600000]])
        r.restart().write("sram:100", 7).run(5)
        self.assertEqual((r.cycle, r.read("sram:100@0", "int32").tolist()), (5, [[7]]))
        self.assertIn("result r", r.debug("until z"))
        self.assertTrue(r.svg().startswith("<svg") and r._repr_svg_() == r.svg())

    def test_schedule_as_arrays(self):
        r = gf11.load("dot", processors=2, level=0)
        issues, table = r.issues(), r.timeline()
        self.assertEqual(sorted(i.recorded for i in issues), list(range(len(issues))))
        self.assertEqual((table >= 0).sum(), len(issues))
        self.assertEqual(issues[table[0].max()].unit, "alu")
        self.assertLessEqual(r.in_flight()[0].max(), 25)
        again = gf11.schedule(r.microcode, "dot.mc", processors=2)
        self.assertEqual((again.cycles, again.bound), (r.cycles, None))
        words = [x.run().read("sram:b1+0..300", "uint32").tolist() for x in (r, again, gf11.schedule(
            r.operations, processors=2))]
        self.assertEqual(words[0], words[1])
        self.assertEqual(words[0], words[2])

    def test_errors(self):
        with self.assertRaises(mp.InputError) as caught:
            gf11.schedule("load s[1] -> x\nfadd x, q -> y\n", "mine.ops")
        self.assertEqual((caught.exception.file, caught.exception.line, caught.exception.column), ("mine.ops", 2, 9))
        r = gf11.load("dot", processors=1, level=0)
        for wrong in (lambda: r.read("ram:1"), lambda: r.write("sram:1..4", [1.0, 2.0]), lambda: r.svg("portrait"),
                      lambda: r.debug("stap"), lambda: gf11.load("no-such-routine")):
            self.assertRaises(mp.InputError, wrong)


class Tables(unittest.TestCase):
    def test_a_frame_becomes_a_model(self):
        import pandas
        frame = pandas.read_csv(example("iris.csv"))
        table = mp.Table(frame)
        self.assertEqual((table.task, len(table)), ("classes", 150))
        train, held_out = table.cut(0.2)
        run = mp.Run(table.network(hidden=16), epochs=30, patience=0)
        run.train(train, test=held_out)
        self.assertGreater(run.measure(held_out).accuracy, 0.85)
        self.assertIn("<table>", run.measure(held_out)._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "iris.safetensors")
            run.save(path)
            model = mp.Run.open(path)
        shuffled = frame[frame.columns[::-1]]  # columns are found by name
        out = model.predict(shuffled)
        guesses = np.array(model.classes)[out.argmax(axis=1)]
        self.assertGreater(np.mean(guesses == frame[frame.columns[-1]]), 0.85)
        np.testing.assert_array_equal(out, model.predict(example("iris.csv")))
        self.assertEqual({c.role for c in table.columns}, {"input", "target"})
        self.assertTrue(table.decisions)


    def test_tuning_is_that_of_the_command_line(self):
        ours = mp.tune(example("iris.csv"), trials=9, folds=3, threads=2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "iris.safetensors")
            command = [os.environ["MICROPROP"], "tune", example("iris.csv"), "--trials=9", "--folds=3", "--json",
                       "--quiet", "--save", path]
            theirs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["best"]
            self.assertEqual(ours.run.fingerprint, mp.Run.open(path).fingerprint)
        self.assertEqual([t.number for t in ours.trials], [t["trial"] for t in theirs])
        np.testing.assert_allclose([t.score for t in ours.trials], [t["score"] for t in theirs], rtol=1e-12)
        self.assertEqual(ours.best.settings, {k: theirs[0][k] for k in ours.best.settings})
        self.assertIn("<table>", ours._repr_html_())
        own = mp.tune(example("iris.csv"), trials=2, folds=2, space={"hidden": [4], "rate": [0.003, 0.01]})
        self.assertEqual(own.run.network.groups[1].units, 4)


if __name__ == "__main__":
    unittest.main()
