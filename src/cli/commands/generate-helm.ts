import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parseCustomResources } from '../../codegen/crd-parser.ts';
import type { ProjectFiles } from '../../codegen/template.ts';
import { CHART_MARK, chartFiles } from '../chart/chart.ts';
import type { ChartSource } from '../chart/chart.ts';
import { monitoringOf } from '../chart/monitoring.ts';
import { onPath, UsageError } from '../common/errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { GENERATE_OPTIONS } from '../flags/options.ts';
import { declaredMetrics } from '../program/declared-metrics.ts';
import { declaredWebhooks } from '../program/declared-webhooks.ts';
import { readerOf } from '../program/installation.ts';
import { packageRoot } from '../program/package.ts';
import { defaultControllers, isClusterScoped } from '../program/program.ts';
import type { CommandContext, ProgramOptions } from '../program/program.ts';
import { imageName } from './manifests.ts';
import { manifestsOfKinds, readerOfFiles } from './generate-manifests.ts';
import { readTexts, writeGenerated } from './generated-folder.ts';
import { programIn } from './project-program.ts';

type Flags = Pick<OptionValues<typeof GENERATE_OPTIONS>, 'name' | 'chart' | 'image' | 'check'>;

/** Default of `--chart`. */
const DEFAULT_FOLDER = 'dist/chart';

/** Version of a program without a package. The manifests have this tag of its image. */
const FIRST_VERSION = '0.1.0';

/** Reads the files of the installation of this package, from which the monitoring is made. */
export const ownManifests = (): ReturnType<typeof readerOf> =>
  readerOf(new URL('hack/deploy/', packageRoot()));

/**
 * Writes a Helm chart whose default values install what the manifests of a program install. The program is that of this
 * project, of a module, or of CRDs. Files that an earlier run wrote are replaced or deleted.
 *
 * @throws {UsageError} if there is no program, or the folder has another chart
 */
export async function generateHelm(
  operands: readonly string[],
  { name, chart: folder, image, check }: Flags,
  context: Pick<CommandContext, 'print' | 'program'>,
): Promise<number> {
  const chart = folder || DEFAULT_FOLDER;
  const source = await chartSource(operands, name, context);
  const files = chartFiles({ ...source, ...(image && { image: imageName(image) }) });
  const present = await onPath(`cannot use --chart=${chart}`, () => readTexts(chart));
  const isOurs = present.get('Chart.yaml')?.startsWith(CHART_MARK) ?? present.size === 0;
  if (!isOurs) {
    throw new UsageError(
      `${chart} has files that were not generated: move them, or choose another --chart`,
    );
  }
  const orphans = [...present.keys()].filter(
    (path) => path.startsWith('templates/') && !files.has(path),
  );
  return writeGenerated(
    { folder: chart, files, present, orphans },
    {
      flag: 'chart',
      check,
      print: context.print,
    },
  );
}

/** @throws {UsageError} if there is no program */
async function chartSource(
  operands: readonly string[],
  name: string,
  context: Pick<CommandContext, 'program'>,
): Promise<ChartSource> {
  const program = await programIn(operands, name, context);
  if (program) return sourceOfProgram(program);
  const {
    program: named,
    files,
    webhooks,
  } = await manifestsOfKinds(operands, name, 'generate helm');
  return {
    program: named,
    version: await packageVersion(),
    read: readerOfFiles(files),
    webhooks,
    hasWebhooksOn: true,
    isNamespaced: !isClusterWide(files),
    monitoring: monitoringOf(named, [], ownManifests()),
  };
}

/** Returns whether one of the kinds is cluster-scoped. */
function isClusterWide(files: ProjectFiles): boolean {
  return [...files]
    .filter(([path]) => path.startsWith('deploy/crds/'))
    .flatMap(([, text]) => parseCustomResources(text))
    .some(({ namespaced }) => !namespaced);
}

/** Returns the version of the package in this folder, or that of a new one. */
async function packageVersion(): Promise<string> {
  if (!existsSync('package.json')) return FIRST_VERSION;
  const { version }: { version?: string } = JSON.parse(await readFile('package.json', 'utf8'));
  return version ?? FIRST_VERSION;
}

/**
 * Returns what the chart of a program installs.
 *
 * @throws {UsageError} if the program has no manifests
 */
export async function sourceOfProgram(program: ProgramOptions): Promise<ChartSource> {
  const { name, version, deploy, controllers, webhooksOnByDefault = true } = program;
  if (!deploy)
    throw new UsageError(
      `The program ${name} has no option deploy with the folder of its manifests`,
    );
  const isWide = defaultControllers(program).some((each) => {
    const controller = controllers[each];
    return controller !== undefined && isClusterScoped(controller);
  });
  return {
    program: name,
    version,
    read: readerOf(deploy),
    webhooks: declaredWebhooks(program),
    hasWebhooksOn: webhooksOnByDefault,
    isNamespaced: !isWide,
    monitoring: monitoringOf(name, await declaredMetrics(program), ownManifests()),
  };
}
