import { CONTROLLERS, DEFAULT_CONTROLLERS } from '../../controllers/registry.ts';
import { goQuote } from '../../util/go-quote.ts';
import { namespaceName } from '../cluster-access.ts';
import type { CommandContext } from '../command.ts';
import { selectControllers } from '../run-config.ts';
import { EXIT_OK, UsageError } from '../exit-codes.ts';
import { installation, readDeployed } from '../installation.ts';
import type { InstalledController } from '../installation.ts';
import type { OptionValues } from '../flags/option.ts';
import type { MANIFESTS_OPTIONS } from '../flags/command-options.ts';

/**
 * Prints the manifests of an installation: those of this build, changed as flags ask for.
 *
 * @throws {UsageError} on names that cannot be, and on controllers that do not go with the rest
 */
export async function manifests(
  flags: OptionValues<typeof MANIFESTS_OPTIONS>,
  { print }: Pick<CommandContext, 'print'>,
): Promise<number> {
  const namespaces = [
    ...new Set(flags.namespaces.map((name) => namespaceName(name, '--namespaces'))),
  ];
  const text = installation(readDeployed, {
    namespace: flags.namespace ? namespaceName(flags.namespace, '--namespace') : undefined,
    image: flags.image ? imageName(flags.image) : undefined,
    namespaces,
    controllers: installedControllers(flags.controllers, namespaces.length > 0),
    only: flags.only,
  });
  print(text.trimEnd());
  return EXIT_OK;
}

/** Undefined for what is on by default, of which the manifests need not speak. */
function installedControllers(
  selectors: readonly string[],
  isNamespaced: boolean,
): InstalledController[] | undefined {
  const names = selectControllers(selectors, [...CONTROLLERS.keys()], DEFAULT_CONTROLLERS);
  if (names.join() === DEFAULT_CONTROLLERS.join()) return undefined;
  return [...CONTROLLERS]
    .filter(([name]) => names.includes(name))
    .map(([name, { resource, isOnByDefault, isClusterScoped }]) => {
      if (isNamespaced && isClusterScoped) {
        throw new UsageError(
          `--controllers has ${name}, which is cluster-scoped and cannot be combined with --namespaces`,
        );
      }
      return { name, resource, isOnByDefault };
    });
}

/** As strict as it takes to find a slip of the finger: the cluster knows what images there are. */
function imageName(image: string): string {
  if (!/^[\w.-]+(:\d+)?(\/[\w.-]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$/.test(image)) {
    throw new UsageError(
      `invalid value ${goQuote(image)} for --image: must be an image name, as in registry.example.com/crd-controller:1.2.3`,
    );
  }
  return image;
}
