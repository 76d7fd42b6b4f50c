import { goQuote } from '../../util/go-quote.ts';
import { namespaceName } from '../program/cluster-access.ts';
import { selectControllers } from '../program/run-config.ts';
import { EXIT_OK, UsageError } from '../common/errors.ts';
import { declaredWebhooks } from '../program/declared-webhooks.ts';
import { installation, readerOf } from '../program/installation.ts';
import type { InstalledController } from '../program/installation.ts';
import type { OptionValues } from '../flags/option.ts';
import type { MANIFESTS_OPTIONS } from '../flags/options.ts';
import { defaultControllers, isClusterScoped } from '../program/program.ts';
import type { CommandContext, ProgramOptions } from '../program/program.ts';

/**
 * Prints the installation manifests of this version, modified by the flags.
 *
 * @throws {UsageError} on invalid names, and on controllers that conflict with other flags
 */
export async function manifests(
  program: ProgramOptions,
  deploy: URL,
  flags: OptionValues<typeof MANIFESTS_OPTIONS>,
  { print }: Pick<CommandContext, 'print'>,
): Promise<number> {
  const namespaces = [
    ...new Set(flags.namespaces.map((name) => namespaceName(name, '--namespaces'))),
  ];
  const text = installation(program.name, readerOf(deploy), {
    namespace: flags.namespace ? namespaceName(flags.namespace, '--namespace') : undefined,
    image: flags.image ? imageName(flags.image) : undefined,
    namespaces,
    controllers: installedControllers(program, flags.controllers, namespaces.length > 0),
    webhooks:
      program.webhooksOnByDefault === false ? undefined : declaredWebhooks(program, namespaces),
    only: flags.only,
  });
  print(text.trimEnd());
  return EXIT_OK;
}

/** Returns undefined for the default controllers, which need no flag. */
function installedControllers(
  program: ProgramOptions,
  selectors: readonly string[],
  isNamespaced: boolean,
): InstalledController[] | undefined {
  const { controllers } = program;
  const onByDefault = defaultControllers(program);
  const names = selectControllers(selectors, Object.keys(controllers), onByDefault);
  const selected = Object.entries(controllers).filter(([name]) => names.includes(name));
  const [excluded] = isNamespaced ? (selected.find(([, each]) => isClusterScoped(each)) ?? []) : [];
  if (excluded !== undefined) {
    throw new UsageError(
      `--namespaces cannot be combined with the controller ${excluded}, which is cluster-scoped: select others by --controllers`,
    );
  }
  if (names.join() === onByDefault.join()) return undefined;
  return selected.map(([name, { resource, isOnByDefault = true }]) => ({
    name,
    resource,
    isOnByDefault,
  }));
}

/**
 * Detects typing errors only. The cluster decides whether the image exists.
 *
 * @throws {UsageError} on these
 */
export function imageName(image: string): string {
  if (!/^[\w.-]+(:\d+)?(\/[\w.-]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$/.test(image)) {
    throw new UsageError(
      `invalid value ${goQuote(image)} for --image: must be an image name, as in registry.example.com/controller:1.2.3`,
    );
  }
  return image;
}
