"""What the end-to-end tests share: running the binaries, and reading what they write."""

import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import numpy

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("ORIEL_BIN_DIR", SOURCE / "build" / "dev" / "bin"))
# Of PyTorch, where it is installed (tools/setup.sh --python).
VENV = pathlib.Path(os.environ.get("ORIEL_VENV", pathlib.Path.home() / ".cache" / "oriel" / "venv"))
HAVE_MPI = os.environ.get("ORIEL_HAVE_MPI", "TRUE").upper() in ("1", "ON", "TRUE")
MODEL = SOURCE / "models" / "llava_tiny" / "model.onnx"
GOLDEN = SOURCE / "models" / "llava_tiny" / "golden"
DATA = GOLDEN / "data"

# Open MPI refuses root and more ranks than cores unless told; containers have both.
ENVIRONMENT = dict(
    os.environ,
    OMPI_ALLOW_RUN_AS_ROOT="1",
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    OMPI_MCA_rmaps_base_oversubscribe="1",
    # Open MPI leaks at exit by design; the gtests look for leaks.
    ASAN_OPTIONS="detect_leaks=0:allow_user_poisoning=0",  # as in tests/lit.cfg.py
)


def rank_environments(world: int) -> list[dict[str, str]]:
    """Of the ranks that torchrun or an operator of Kubernetes would start on this machine."""
    # Below those that the kernel gives to whoever asks for any.
    port = random.randrange(10_000, 32_768)
    return [dict(ENVIRONMENT, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(world), RANK=str(rank),
                 LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world)) for rank in range(world)]


def command(binary: str, *arguments) -> list[str]:
    return [str(BIN / binary), *map(str, arguments)]


def run(binary: str, *arguments, timeout: float = 100) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(binary, *arguments), capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT
    )


def read_safetensors(path) -> dict[str, numpy.ndarray]:
    content = pathlib.Path(path).read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    dtypes = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "F16": "<f2"}
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            data = content[8 + size + begin : 8 + size + end]
            if entry["dtype"] == "BF16":  # as f32
                widened = numpy.frombuffer(data, "<u2").astype("<u4") << 16
                tensors[name] = widened.view("<f4").reshape(entry["shape"])
            else:
                tensors[name] = numpy.frombuffer(data, dtypes[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def write_safetensors(path: pathlib.Path, tensors: dict[str, numpy.ndarray], dtype: str = "F32") -> None:
    """`dtype` is what the format calls the elements, whose bits the arrays have."""
    header, offset = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": dtype, "shape": value.shape, "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(value.tobytes() for value in tensors.values()))


def relative_error(actual: numpy.ndarray, expected: numpy.ndarray) -> float:
    """2-norm of the difference over the 2-norm of what is expected, in float64."""
    actual, expected = actual.astype(numpy.float64), expected.astype(numpy.float64)
    return float(numpy.linalg.norm(actual - expected) / max(numpy.linalg.norm(expected), 1e-300))


def losses(metrics: list[dict]) -> list[float]:
    return [line["loss"] for line in metrics]


def write_shard(path: pathlib.Path, samples: list[dict[str, numpy.ndarray]]) -> None:
    """A tar shard as the loader reads it."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as shard:
        for index, sample in enumerate(samples):
            for name, array in sample.items():
                buffer = io.BytesIO()
                numpy.save(buffer, array)
                member = tarfile.TarInfo(f"{index:06d}.{name}.npy")
                member.size = buffer.tell()
                buffer.seek(0)
                shard.addfile(member, buffer)


def read_shards(folder: pathlib.Path, count: int) -> list[dict[str, numpy.ndarray]]:
    """The first `count` samples of a folder of shards."""
    samples: dict[str, dict[str, numpy.ndarray]] = {}
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as shard:
            for member in shard:
                key, name = member.name.split(".", 1)
                array = numpy.load(io.BytesIO(shard.extractfile(member).read()))
                samples.setdefault(key, {})[name.removesuffix(".npy")] = array
    return list(samples.values())[:count]


class OrielTestCase(unittest.TestCase):
    """A test with a folder of its own, and plans compiled into it."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="oriel_e2e_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_ok(self, binary: str, *arguments, **options) -> subprocess.CompletedProcess:
        result = run(binary, *arguments, **options)
        self.assertEqual(result.returncode, 0, f"{binary} failed:\n{result.stdout}{result.stderr}")
        self.assertNotRegex(result.stderr, "(?m)^error: ")
        return result

    def assert_fails(self, result: subprocess.CompletedProcess, *texts: str) -> None:
        """A clean refusal: exit code 1 or 2, one error that says all of `texts`."""
        output = result.stdout + result.stderr
        self.assertIn(result.returncode, (1, 2), output)
        self.assertIn("error: ", output)
        for text in texts:
            self.assertIn(text, output)

    def compile(self, recipe, world: int = 1, model=MODEL, name: str = "plan", options=()) -> pathlib.Path:
        """For data-parallel ranks, with the recipe's microbatches."""
        plan = self.folder / f"{name}_{world}.oplan"
        self.run_ok("oriel", "compile", model, "--recipe", recipe, "--mesh", f"dp={world}", *options, "-o", plan)
        return plan

    def write_data(self, name: str, samples: list[dict[str, numpy.ndarray]]) -> pathlib.Path:
        """A folder with one shard."""
        folder = self.folder / name
        folder.mkdir()
        write_shard(folder / "0.tar", samples)
        return folder

    def recipe(self, base: str, *replacements: tuple[str, str]) -> pathlib.Path:
        """A recipe of the golden folder with some texts replaced."""
        text = (GOLDEN / base).read_text()
        for old, new in replacements:
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.folder / base
        path.write_text(text)
        return path

    def train(self, plan, *arguments, data=DATA, world: int = 1, comm: str = "in_process", timeout: float = 100):
        """Trains without shuffling; the metrics of each step."""
        metrics = self.folder / f"metrics_{len(list(self.folder.iterdir()))}.jsonl"
        self.run_ok("oriel-run", plan, "--data", data, "-n", world, "--comm", comm,
                    "--no-shuffle", "--metrics", metrics, *arguments, timeout=timeout)
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def trained_gradients(self, plan, data, world: int = 1) -> dict:
        """Of the first step, by parameter."""
        dumped = self.folder / "gradients.safetensors"
        self.train(plan, "--dump-gradients", dumped, data=data, world=world)
        return read_safetensors(dumped)
