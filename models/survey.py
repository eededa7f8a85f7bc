#!/usr/bin/env python3
"""Which Hugging Face classes export, import and train: docs/import_coverage.md.

    models/survey.py --work build/survey --train    # everything, half an hour
    models/survey.py --work build/survey --only Qwen3VLForConditionalGeneration
    models/survey.py --work build/survey --doc docs/import_coverage.md

A case is a class, an exporter and an operator set, at the size "tiny" of
hf_config.py. Each is exported (in a process of its own, with a time limit),
imported and compiled up to `raise`; with --train also trained for 20 steps
beside PyTorch. The exports stay in the work folder and are not made again;
--fresh removes them first. The exports with one more decoder or vision layer
give the ops of a layer by difference.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import shutil
import sys
import time
import traceback
import warnings

# `in_child` forks, which is safe only while this process has one thread.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import torch

import export
import hf
import survey_case
import survey_tables
import survey_train

CLASSES = (
    "LlavaForConditionalGeneration",
    "LlavaNextForConditionalGeneration",
    "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
    "SmolVLMForConditionalGeneration",
    "PaliGemmaForConditionalGeneration",
    "InternVLForConditionalGeneration",
    "Gemma3ForConditionalGeneration",
    "AyaVisionForConditionalGeneration",
    "Cohere2VisionForConditionalGeneration",
    "CLIPModel",
    "SiglipModel",
    # These go the generic way, without a thought for them.
    "DeepseekVLForConditionalGeneration",
    "GotOcr2ForConditionalGeneration",
    "JanusForConditionalGeneration",
    "Ovis2ForConditionalGeneration",
    "VideoLlavaForConditionalGeneration",
)
OPSETS = (17, 18, 23)
# Also with an attention mask among the inputs.
PADDED_AT = (("dynamo", 23), ("torchscript", 17))
# Where the ops of a layer are counted.
LAYERS_AT = (("dynamo", 18), ("dynamo", 23), ("torchscript", 17))


def in_child(function, arguments, log, timeout, owner):
    """function(*arguments) in a forked process.

    If it raises, {"stage", "reason"} of that; if it dies or does not end, the
    stage is `owner`.

    The parent has imported torch and transformers already, so that a case does
    not pay for it.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work():
        with export.output_to(log):
            try:
                sender.send(function(*arguments))
            except Exception as error:
                traceback.print_exc()
                sender.send({"stage": survey_case.whose(error),
                             "reason": hf.first_cause(error)})

    process = context.Process(target=work)
    process.start()
    sender.close()
    result = {"stage": owner, "reason": f"no end after {timeout} s"}
    if receiver.poll(timeout):
        try:
            result = receiver.recv()
        except EOFError:
            process.join()
            result["reason"] = f"died with exit code {process.exitcode}"
    process.kill()
    process.join()
    return result


def survey(case, args):
    """Takes a case as far as it goes; returns and keeps its result."""
    folder = args.work / str(case)
    if args.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    exported = folder / "export.json"
    if exported.exists():
        result = json.loads(exported.read_text())
    else:
        result = in_child(survey_case.export_case, (case, folder),
                          folder / "export.log", args.timeout, "the exporter")
        exported.write_text(json.dumps(result, indent=1))
    if not result["stage"]:
        result |= survey_case.import_case(args.bin, folder, result)
        if result["stage"] == "Oriel" and result["runtime"]:
            result |= {"stage": "the exporter", "reason": result["runtime"]}
    kept = folder / "result.json"
    trained = (json.loads(kept.read_text()).get("trained")
               if kept.exists() else None)
    trains = case.extra not in survey_case.LAYER_KEYS
    if args.train and not result["stage"] and trains:
        trained = in_child(survey_train.train, (case, folder, args.bin, result),
                           folder / "train.log", args.timeout, "Oriel")
    if trained and not result["stage"]:
        result["trained"] = trained
    kept.write_text(json.dumps(result, indent=1))
    return result


def cases(args):
    for name in args.only or CLASSES:
        for exporter in args.exporter or export.EXPORTERS:
            for opset in args.opset or OPSETS:
                yield survey_case.Case(name, exporter, opset)
                if (exporter, opset) in PADDED_AT:
                    yield survey_case.Case(name, exporter, opset, "padding")
                if (exporter, opset) in LAYERS_AT and not args.no_layers:
                    for extra in survey_case.LAYER_KEYS:
                        yield survey_case.Case(name, exporter, opset, extra)


def say(case, result):
    if result["stage"]:
        text = f"{result['stage']}: {result['reason']}"
    elif "trained" in result:
        text = survey_tables.training_text(result["trained"])
    else:
        text = "imports"
    print(f"{time.strftime('%H:%M:%S')} {case}: {text}"[:400], flush=True)


def parse_arguments():
    source = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True,
                        metavar="DIR", help="exports and results")
    parser.add_argument("--bin", type=pathlib.Path, metavar="DIR",
                        default=source / "build" / "dev" / "bin",
                        help="Oriel's binaries (default: build/dev/bin)")
    parser.add_argument("--only", action="append", metavar="CLASS",
                        help="repeatable (default: all of the survey)")
    parser.add_argument("--exporter", action="append",
                        choices=export.EXPORTERS, help="repeatable")
    parser.add_argument("--opset", action="append", type=int, metavar="N",
                        help="repeatable")
    parser.add_argument("--no-layers", action="store_true",
                        help="don't count the ops of a layer")
    parser.add_argument("--train", action="store_true",
                        help="20 steps beside PyTorch")
    parser.add_argument("--timeout", type=int, default=600, metavar="S",
                        help="for one export or training (default: 600)")
    parser.add_argument("--fresh", action="store_true", help="export again")
    parser.add_argument("--doc", type=pathlib.Path, metavar="FILE",
                        help="write the tables of all results in the work\n"
                             "folder between the markers of this file")
    return parser.parse_args()


def main():
    args = parse_arguments()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    for case in cases(args):
        say(case, survey(case, args))
    if args.doc:
        survey_tables.update(args.doc, args.work, CLASSES, OPSETS, PADDED_AT)


if __name__ == "__main__":
    sys.exit(main())
