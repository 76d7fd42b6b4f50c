/** A command in a document with its documented output. */
export interface ConsoleStep {
  readonly command: string;
  /** `...` as first line matches any number of lines. */
  readonly output: readonly string[];
}

/** Returns the commands in the `console` blocks of a Markdown text, in order. */
export function consoleSteps(markdown: string): ConsoleStep[] {
  const steps: { command: string; output: string[] }[] = [];
  for (const [, block = ''] of markdown.matchAll(/^```console\n(.*?)^```$/gms)) {
    for (const line of block.split('\n').slice(0, -1)) {
      if (line.startsWith('$ ')) steps.push({ command: line.slice(2), output: [] });
      else steps.at(-1)?.output.push(line);
    }
  }
  return steps;
}

/** Reports whether `printed` is the output of the step, apart from values that differ between runs. */
export function matchesOutput({ command, output }: ConsoleStep, printed: string): boolean {
  const isPart = output[0] === '...';
  const wanted = (isPart ? output.slice(1) : output).map(withoutVolatileParts);
  const lines = printed.trimEnd().split('\n').map(withoutVolatileParts);
  const compared = isPart ? lines.slice(-wanted.length) : lines;
  // The order of lines from the same second varies.
  const [a, b] = command.startsWith('kubectl describe')
    ? [wanted.toSorted(), compared.toSorted()]
    : [wanted, compared];
  return a.join('\n') === b.join('\n');
}

/** Returns a line without times, random names, addresses, versions, namespaces and column widths. */
function withoutVolatileParts(line: string): string {
  return (
    line
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
      // Before ages: a random name may look like one, as `42h2s` does.
      .replaceAll(/-[a-z\d]{6,10}-[a-z\d]{5}\b/g, '-RANDOM')
      .replaceAll(/\b(?:\d+(?:ms|[smhd]))+\b(?: \(x\d+ over \w+\))?/g, 'AGE')
      .replaceAll(/\b\d+\.\d+\.\d+\.\d+\b/g, 'ADDRESS')
      .replaceAll(/\b(?:fake|(?:kwok-)?v\d+\.\d+\.\S+)/g, 'VERSION')
      .replaceAll(/ (?:from|in) \S+ namespace\b\.?/g, '')
      .replaceAll(/ {2,}/g, '  ')
      .trimEnd()
  );
}
