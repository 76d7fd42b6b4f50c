import { MAX_DEPTH } from '../json.ts';
import { isRecord } from '../../util/values.ts';

/** A value that is no JSON, or too much of it. The message names the field and not the value. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
}

/** What an API server takes in one request. */
const MOST_CHARACTERS = 3 * 1024 * 1024;

/**
 * A copy of a parsed document that is a tree, as JSON has it: what YAML's aliases shared is there
 * several times, so its size and depth are bounded here, where anchors cannot hide them. Integers
 * (they come as bigint) become numbers, or, where a number would round them, their own digits.
 *
 * @throws {ValueError} naming the field
 */
export function plainJson(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy = new Copy();
  return copy.record(object, []);
}

class Copy {
  #left = MOST_CHARACTERS;

  record(value: Readonly<Record<string, unknown>>, path: string[]): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        this.#spend(name.length, path);
        return [name, this.#inside(member, name, path)];
      }),
    );
  }

  #value(value: unknown, path: string[]): unknown {
    this.#spend(typeof value === 'string' ? value.length + 1 : 1, path);
    if (typeof value === 'bigint') return integer(value);
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new ValueError(`${display(path)}: JSON has no such number`);
    }
    if (Array.isArray(value)) {
      return value.map((item: unknown, index) => this.#inside(item, `[${index}]`, path));
    }
    return isRecord(value) ? this.record(value, path) : value;
  }

  #inside(value: unknown, step: string, path: string[]): unknown {
    if (path.length >= MAX_DEPTH) {
      throw new ValueError(`${display(path)}: nested deeper than ${MAX_DEPTH} levels`);
    }
    path.push(step);
    const copy = this.#value(value, path);
    path.pop();
    return copy;
  }

  #spend(characters: number, path: readonly string[]): void {
    this.#left -= characters;
    if (this.#left < 0) {
      throw new ValueError(
        `the object is larger than the ${MOST_CHARACTERS / 1024 / 1024} MiB that an API server takes; that is exceeded in ${display(path)}`,
      );
    }
  }
}

function display(path: readonly string[]): string {
  const steps = path.slice(0, 8).map((step) => (step.startsWith('[') ? step : `.${step}`));
  return `${steps.join('').replace(/^\./, '')}${path.length > 8 ? '…' : ''}`;
}

// Since V8 11.4; TypeScript does not know of it.
const json: Pick<typeof JSON, 'stringify'> & {
  readonly rawJSON?: (text: string) => unknown;
} = JSON;

function integer(value: bigint): unknown {
  const rounded = Number(value);
  if (BigInt(rounded) === value || !json.rawJSON) return rounded;
  return json.rawJSON(value.toString());
}
