import { basename } from 'node:path';

/**
 * Returns a command of a program as the user can repeat it: with `npx` or the npm script by which it was started, if it was,
 * because it is then not in the PATH.
 *
 * @param module path of the program's module
 */
export function ownCommand(
  name: string,
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  module: string = process.argv[1] ?? '',
): string {
  const { npm_lifecycle_event: event, npm_lifecycle_script: script = '' } = environment;
  if (event === 'npx' && script.includes(name)) return ['npx', name, ...words].join(' ');
  const [found, own] = /^node (\S+)(?: (\S+))?$/.exec(script)?.slice(1) ?? [];
  const isSame = found !== undefined && basename(found) === basename(module);
  if (!isSame || (own !== undefined && own !== words[0])) return [name, ...words].join(' ');
  return [`npm run -s ${event} --`, ...(own === undefined ? words : words.slice(1))].join(' ');
}

/** Returns the command that installs a part of the manifests of a program. */
export function installCommand(
  name: string,
  part: string,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const manifests = ownCommand(name, ['manifests', `--only=${part}`], environment);
  return `${manifests} | kubectl apply --server-side --force-conflicts -f -`;
}
