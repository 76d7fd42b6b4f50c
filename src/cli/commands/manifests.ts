import { CONTROLLERS, DEFAULT_CONTROLLERS } from '../../controllers/registry.ts';
import { goQuote } from '../../util/go-quote.ts';
import { namespaceName } from '../cluster-access.ts';
import type { CommandContext } from '../command.ts';
import { selectControllers } from '../run-config.ts';
import { EXIT_OK, UsageError } from '../errors.ts';
import { installation, readDeployed } from '../installation.ts';
import type { InstalledController } from '../installation.ts';
import type { OptionValues } from '../flags/option.ts';
import type { MANIFESTS_OPTIONS } from '../flags/options.ts';

/**
 * Prints the installation manifests of this version, modified by the flags.
 *
 * @throws {UsageError} on invalid names, and on controllers that conflict with other flags
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

/** Returns undefined for the default controllers, which need no flag. */
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

/** Detects typing errors only. The cluster decides whether the image exists. */
function imageName(image: string): string {
  if (!/^[\w.-]+(:\d+)?(\/[\w.-]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$/.test(image)) {
    throw new UsageError(
      `invalid value ${goQuote(image)} for --image: must be an image name, as in registry.example.com/crd-controller:1.2.3`,
    );
  }
  return image;
}
