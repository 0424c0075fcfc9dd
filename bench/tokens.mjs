// Token ids by o200k_base: reads a JSON list of texts on stdin, writes a JSON list of lists of ids on stdout.
import { readFileSync } from "node:fs";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

const texts = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(texts.map((text) => encode(text, { disallowedSpecial: new Set() }))));
