import { readFile, rename, writeFile } from 'node:fs/promises';
import { Controller, done, keyOf, objectKey, splitKey } from 'crd-controller';
import { PODS } from 'crd-controller/kinds';
import type { ControllerKit, Lister, ObjectKey } from 'crd-controller';
import type { Pod } from 'crd-controller/kinds';

export interface PodControllerOptions {
  /** File with the names of known Pods, to report Pods that were deleted while the program was stopped. */
  readonly stateFile: string;
  /** @default all namespaces */
  readonly namespaces?: readonly string[];
  readonly print: (line: string) => void;
}

/** How often the file is written, in milliseconds. */
const SAVE_PERIOD_MS = 1000;

/**
 * Prints every addition, change and deletion of a Pod. A key that fails is retried five times and then
 * dropped, with a line in the log.
 */
export function podController(kit: ControllerKit, options: PodControllerOptions): Controller {
  const { stateFile, namespaces = [], print } = options;
  const pods = kit.informers.for(PODS, { namespaces });
  return new Controller(kit, {
    name: 'pods',
    kind: PODS.kind,
    maxRetries: 5,
    sync: async (key) => {
      print(
        pods.lister.get(key)
          ? `Sync/Add/Update for Pod ${splitKey(key).name}`
          : `Pod ${key} does not exist anymore`,
      );
      return done();
    },
  })
    .for(pods)
    .source(async (queue, signal) => {
      // The cache has synced: a key that it does not contain belongs to a deleted Pod.
      for (const key of await readState(stateFile)) {
        if (!pods.lister.get(key)) queue.add(key, { cause: 'stored at the last stop' });
      }
      let saved = '';
      const save = async () => {
        const state = stateOf(pods.lister);
        if (state !== saved) await writeState(stateFile, state);
        saved = state;
      };
      while (!signal.aborted) {
        await save();
        await kit.clock.sleep(SAVE_PERIOD_MS, signal);
      }
      await save();
    });
}

function stateOf(pods: Lister<Pod>): string {
  return JSON.stringify(pods.list().map(keyOf).toSorted(), undefined, 2);
}

async function readState(file: string): Promise<ObjectKey[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
  const keys: unknown = JSON.parse(text);
  if (!Array.isArray(keys)) throw new TypeError(`${file} is not a list of Pods: delete it`);
  return keys.map((key) => {
    const { namespace, name } = splitKey(String(key));
    return objectKey(namespace, name);
  });
}

/** Writes atomically, so that a process that is killed leaves a complete file. */
async function writeState(file: string, state: string): Promise<void> {
  await writeFile(`${file}.next`, `${state}\n`);
  await rename(`${file}.next`, file);
}
