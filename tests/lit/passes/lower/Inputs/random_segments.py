"""Lowers random segments and checks that sharing bytes changes no value.

A segment is run twice with symbols for values: as SSA, and as the instructions on arena offsets that
--oriel-lower-to-exec makes of it. What each returned role holds in the end must be the same symbol. All tensors have
one size, so that two buffers are the same bytes or disjoint.
"""

import random
import re
import subprocess
import sys

FLAT, SQUARE = "tensor<4xf32>", "tensor<2x2xf32>"
NOT_IN_PLACE = ("transpose", "gated_activation_grad", "all_gather", "reduce_scatter", "all_to_all")


class Segment:
    """Random ops on an input, on values that may be replaced, and on their results."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.types = {}  # of each SSA name
        self.symbols = {}  # what it holds
        self.arguments, self.body, self.results = [], [], []
        self.started = []  # names, types and symbols of collectives on their way
        for ref in range(4):
            kind = "input" if ref == 0 else self.random.choice(["parameter", "gradient", "accumulator"])
            self.add_argument(kind, f"r{ref}", self.random.choice([FLAT, SQUARE]))
        for _ in range(self.random.randint(1, 9)):
            self.add_op()
        while self.started:
            self.wait()
        for kind, ref, type in self.arguments[1:]:
            if self.random.random() < 0.8:
                self.results.append((kind, ref, self.pick(type)))
        for i in range(self.random.randint(0, 3)):
            self.results.append(("output", f"y{i}", self.pick()))
        self.random.shuffle(self.results)

    def add_argument(self, kind, ref, type):
        self.types[f"%{ref}"] = type
        self.symbols[f"%{ref}"] = ("initial", kind, ref)
        self.arguments.append((kind, ref, type))

    def pick(self, type=None):
        return self.random.choice([name for name in self.types if type in (None, self.types[name])])

    def add_op(self):
        op = self.random.choice(
            ["exp", "add", "mul", "reshape", "reshape", "constant", "splat", "transpose", "gated_activation_grad", "all_reduce", "pieces", "start", "start", "wait"])
        if op == "start":
            return self.start()
        if op == "wait":
            return self.wait() if self.started else None
        name, a = f"%v{len(self.body)}", self.pick()
        type = self.types[a]
        if op in ("constant", "splat"):
            number = float(len(self.body))
            flat = [number] * 4 if op == "splat" else [1.0, 2.0, 3.0, number]
            value = flat if type == FLAT else [flat[:2], flat[2:]]
            self.write([name], [], f"oriel.constant {{value = dense<{value}> : {type}}}", [type], [str(flat)])
        elif op == "reshape":
            other = SQUARE if type == FLAT else FLAT
            self.write([name], [a], "oriel.reshape", [other], [self.symbols[a]])
        elif op == "transpose":
            order = "0" if type == FLAT else "1, 0"
            text = f"oriel.transpose {{permutation = array<i64: {order}>}}"
            self.write([name], [a], text, [type], [("transpose", 0, self.symbols[a])])
        elif op == "pieces":
            # Of a group of one rank, so that the type stays.
            dims = 'dim = 0 : i64, axes = ["a1"]'
            op, more = self.random.choice([("all_gather", ""), ("reduce_scatter", ', reduction = "max"'), ("slice_local", "")])
            if type == SQUARE and self.random.random() < 0.5:
                op, dims, more = "all_to_all", 'split_dim = 0 : i64, concat_dim = 1 : i64, axes = ["a1"]', ""
            self.write([name], [a], f"oriel.{op} {{{dims}{more}}}", [type], [(op, self.symbols[a])])
        elif op == "all_reduce":
            b = self.pick()
            text = 'oriel.all_reduce {axes = ["a0"], reduction = "sum"}'
            symbols = [("all_reduce", self.symbols[x]) for x in (a, b)]
            self.write([name, name + "b"], [a, b], text, [type, self.types[b]], symbols)
        else:
            count, results = {"exp": (1, 1), "gated_activation_grad": (3, 2)}.get(op, (2, 1))
            operands = [a] + [self.pick(type) for _ in range(count - 1)]
            text = f"oriel.{op}" + (' {kind = "silu"}' if results == 2 else "")
            symbols = [(op, i, *(self.symbols[x] for x in operands)) for i in range(results)]
            self.write([name, name + "b"][:results], operands, text, [type] * results, symbols)

    def start(self):
        """One collective, or a bucket of two that travel as one."""
        op, attributes = self.random.choice([
            ("all_reduce", 'axes = ["a0"], oriel.stream = 1 : i64, reduction = "sum"'),
            ("all_gather", 'axes = ["a1"], oriel.stream = 2 : i64, dim = 0 : i64'),
            ("reduce_scatter", 'axes = ["a1"], oriel.stream = 2 : i64, dim = 0 : i64, reduction = "max"')])
        count = self.random.randint(1, 2)
        if count == 2:
            attributes += f", oriel.bucket = {len(self.body)} : i64"
        names, operands = [], [self.pick() for _ in range(count)]
        for operand in operands:
            type = self.types[operand]
            names.append(f"%v{len(self.body)}s")
            self.body.append(f"{names[-1]} = oriel.{op} {operand} {{{attributes}}} : ({type}) -> {type}")
        self.started.append((names, [self.types[x] for x in operands], [(op, self.symbols[x]) for x in operands]))

    def wait(self):
        started, types, symbols = self.started.pop(self.random.randrange(len(self.started)))
        number = len(self.body)
        self.body.append(f"%v{number}:{len(started)} = oriel.wait {', '.join(started)} : ({', '.join(types)}) -> ({', '.join(types)})")
        names = [f"%v{number}#{i}" for i in range(len(started))]
        self.types.update(zip(names, types))
        self.symbols.update(zip(names, symbols))

    def write(self, names, operands, text, types, symbols):
        op, _, attributes = text.partition(" ")
        operand_types = ", ".join(self.types[x] for x in operands)
        self.body.append(f"{', '.join(names)} = {op} {', '.join(operands)} {attributes} : ({operand_types}) -> ({', '.join(types)})")
        self.types.update(zip(names, types))
        self.symbols.update(zip(names, symbols))

    def text(self):
        def role(kind, ref):
            return f'{{oriel.kind = "{kind}", oriel.ref = "{ref}"}}'

        arguments = ", ".join(f"%{ref}: {type} {role(kind, ref)}" for kind, ref, type in self.arguments)
        results = ", ".join(f"{self.types[name]} {role(kind, ref)}" for kind, ref, name in self.results)
        values = ", ".join(name for _, _, name in self.results)
        types = ", ".join(self.types[name] for _, _, name in self.results)
        end = f"return {values} : {types}" if self.results else "return"
        body = "\n".join(self.body + [end])
        return ('module attributes {oriel.grid = {a0 = 2 : i64, a1 = 1 : i64}, oriel.mesh = {dp = ["a0"]}} {\n'
                f"func.func @update({arguments}) -> ({results}) {{\n{body}\n}}}}\n")


def run_program(text):
    """What each role holds after the instructions; fails if an instruction may not share what it shares."""
    memory, offsets, roles = {}, {}, {}
    place, on_their_way = -1, {}  # by their places
    for name, fields in re.findall(r"exec\.buffer @(\w+) : \S+ \{(.*)\}", text):
        offset = offsets[name] = int(re.search(r"offset = (\d+)", fields)[1])
        kind = re.search(r'kind = "(\w+)"', fields)[1]
        if ref := re.search(r'ref = "(\w+)"', fields):
            roles[kind, ref[1]] = offset
            memory[offset] = ("initial", kind, ref[1])
        if kind == "constant":
            numbers = [float(x) for x in re.findall(r"[-\d.e+]+", re.search(r"dense<(.*?)> :", fields)[1])]
            memory[offset] = str(numbers * (4 // len(numbers)))
    for line in text.splitlines():
        place = -1 if "exec.segment" in line else place + 1
        if wait := re.match(r"\s*exec\.wait (\d+)", line):
            for op, value, source, target in on_their_way.pop(int(wait[1])):
                assert memory[target] == ("on its way", int(wait[1])), f"what was on its way is written over: {line}"
                assert source == target or memory[source] == value, f"its operand is written over: {line}"
                memory[target] = (op, value)
        match = re.match(r"\s*exec\.(launch|collective|slice|copy) (?:\"(\w+)\" )?.*?\[((?:@\w+(?:, )?)*)\] -> \[(.*?)\](.*)", line)
        if not match:
            continue
        kind, op = match[1], match[2]
        inputs, outputs = ([offsets[x] for x in re.findall(r"@(\w+)", part)] for part in (match[3], match[4]))
        assert len(set(outputs)) == len(outputs), f"results share bytes: {line}"
        assert op not in NOT_IN_PLACE or not set(inputs) & set(outputs), f"overwrites an operand: {line}"
        values = [memory.get(x) for x in inputs]
        if kind == "copy":
            memory[outputs[0]] = values[0]
        elif kind == "slice":
            assert not set(inputs) & set(outputs), f"overwrites an operand: {line}"
            memory[outputs[0]] = ("slice_local", values[0])
        elif op == "fill":
            memory[outputs[0]] = str([float(re.search(r"value = (\S+)", match[5])[1])] * 4)
        elif kind == "collective":
            for i, output in enumerate(outputs):
                assert output not in inputs[:i] + inputs[i + 1:], f"lies over another operand: {line}"
                memory[output] = (op, values[i]) if "stream" not in match[5] else ("on its way", place)
            if "stream" in match[5]:
                on_their_way[place] = [(op, *each) for each in zip(values, inputs, outputs)]
        else:
            memory.update((output, (op, i, *values)) for i, output in enumerate(outputs))
    return {role: memory[offset] for role, offset in roles.items()}


def main():
    checked = 0
    for seed in range(int(sys.argv[1])):
        segment = Segment(seed)
        lowered = subprocess.run(["oriel-opt", "--oriel-lower-to-exec"], input=segment.text(), capture_output=True, text=True)
        if "returns the old value of" in lowered.stderr:
            continue  # two values that change places
        assert lowered.returncode == 0, f"seed {seed}\n{segment.text()}{lowered.stderr}"
        found = run_program(lowered.stdout)
        expected = {(kind, ref): ("initial", kind, ref) for kind, ref, _ in segment.arguments}
        expected.update({(kind, ref): segment.symbols[name] for kind, ref, name in segment.results})
        for role, symbol in expected.items():
            assert found[role] == symbol, f"seed {seed}, {role}\n{segment.text()}{lowered.stdout}"
        checked += 1
    print(f"{checked} segments checked")


main()
