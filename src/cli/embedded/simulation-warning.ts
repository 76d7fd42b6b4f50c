import { controllerOf } from '../../api/metadata.ts';
import { equalJson } from '../../api/equal.ts';
import { groupResourceOf } from '../../api/resource.ts';
import { BUILTIN_KINDS } from '../../apiserver/builtin/kinds.ts';
import { POD_PATHS } from '../../apiserver/builtin/pods/pod-paths.ts';
import type {
  ResourceDefinition,
  StoredObject,
} from '../../apiserver/objects/resource-definition.ts';
import { isInterpreted, SIMULATION_PREFIX } from '../../cluster/kubelet/simulated-program.ts';
import { objectIn, objectsIn, textsIn } from '../../util/json-value.ts';
import type { JsonObject } from '../../util/json-value.ts';

export const SIMULATION_WARNING =
  'this server simulates Pods: it pulls no image and runs no program, so Pods become ready with any image, and their logs are empty';

/**
 * The built-in kinds, with a warning for Pods and workloads of users of which nothing is simulated but that they run. An object
 * with a controller has none, nor has an update with the same template.
 */
export function kindsWithSimulationWarning(): readonly ResourceDefinition[] {
  return BUILTIN_KINDS.map(withWarning);
}

function withWarning(kind: ResourceDefinition): ResourceDefinition {
  const path = POD_PATHS.get(groupResourceOf(kind));
  // Nothing runs a PodTemplate.
  if (!path || kind.plural === 'podtemplates') return kind;
  const warnings: ResourceDefinition['warnings'] = (object, previous, subresource) => {
    const own = kind.warnings?.(object, previous, subresource) ?? [];
    const isNew = subresource === undefined && isUnsimulated(object, previous, path);
    return isNew ? [...own, SIMULATION_WARNING] : own;
  };
  return { ...kind, warnings };
}

/** Whether an object has a new template without anything that is simulated. */
function isUnsimulated(
  object: StoredObject,
  previous: StoredObject | undefined,
  path: readonly string[],
): boolean {
  if (controllerOf(object)) return false;
  const { metadata, spec } = templateIn(object, path);
  if (previous && equalJson(templateIn(previous, path).spec, spec)) return false;
  const annotations = Object.keys(objectIn(metadata, 'annotations') ?? {});
  return (
    !annotations.some((name) => name.startsWith(SIMULATION_PREFIX)) &&
    !['containers', 'initContainers']
      .flatMap((field) => objectsIn(spec, field))
      .some((container) =>
        isInterpreted({ command: textsIn(container, 'command'), args: textsIn(container, 'args') }),
      )
  );
}

function templateIn(object: StoredObject, path: readonly string[]) {
  const template = path.reduce<JsonObject | undefined>(objectIn, object);
  return { metadata: objectIn(template, 'metadata'), spec: objectIn(template, 'spec') };
}
