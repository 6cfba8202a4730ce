"""Validates the description of the API, and the answers that a server gave.

openapi.py OPENAPI.json ANSWERS.json
"""

import copy
import json
import sys

import jsonschema
import openapi_spec_validator

IN_PARTS = ["allOf", "anyOf", "oneOf"]


def close(schema, is_part=False):
    """Forbids fields that a schema does not name. A part of a schema does not name the fields of the other parts."""
    if isinstance(schema, list):
        for one in schema:
            close(one)
    if not isinstance(schema, dict):
        return
    is_object = "properties" in schema
    if is_object and not is_part:
        schema["unevaluatedProperties"] = False
    for name, value in schema.items():
        if name == "properties":
            for field in value.values():
                close(field)
        elif name in IN_PARTS:
            for part in value:
                close(part, is_part or is_object)
        else:
            close(value)


def described(document, answer):
    """Returns the schema of an answer."""
    responses = document["paths"][answer["path"]][answer["method"]]["responses"]
    if answer["status"] == 200:
        response = responses["200"]
    else:
        response = document["components"]["responses"]["Error"]
    return response["content"][answer["kind"]]["schema"]


def fields(value):
    """Returns copies of a document, each of which has a new field in one object, or lacks one field."""
    if isinstance(value, dict):
        yield {**value, "unknownField": 1}
        for name, inner in value.items():
            for changed in fields(inner):
                yield {**value, name: changed}
    elif isinstance(value, list) and value:
        for changed in fields(value[0]):
            yield [changed, *value[1:]]


def main():
    with open(sys.argv[1]) as file:
        document = json.load(file)
    with open(sys.argv[2]) as file:
        answers = json.load(file)
    openapi_spec_validator.validate(document)
    closed = copy.deepcopy(document)
    close(closed["components"]["schemas"])
    checked = refused = 0
    for answer in answers:
        schema = described(closed, answer)
        if answer["body"] is None:
            assert schema["type"] == "string", answer
            continue
        # References begin at the root of the document.
        validator = jsonschema.Draft202012Validator({**schema, "components": closed["components"]})
        for error in validator.iter_errors(answer["body"]):
            where = f"{answer['method']} {answer['path']} {answer['status']}"
            sys.exit(f"{where}: {error.json_path}: {error.message[:2000]}")
        checked += 1
        if answer["path"] != "/openapi.json":
            refused += sum(not validator.is_valid(changed) for changed in fields(answer["body"]))
    assert checked > 60 and refused > 150, (checked, refused)


main()
