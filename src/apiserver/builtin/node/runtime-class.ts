import { Verbatim } from '../../../api/field-error.ts';
import { goJson } from '../../../util/go-format.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { columns, field } from '../../table/column.ts';
import { validateAmounts, validateContainerResourceName } from '../pods/container-resources.ts';
import { validateToleration } from '../pods/pod-placement.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateLabels } from '../shared/label-selector-validation.ts';
import { NODE_LABELS } from '../shared/warnings.ts';

export const RUNTIME_CLASS: BuiltinKind = {
  resource: 'node.k8s.io/runtimeclasses',
  revalidatesName: 'object',
  createOnUpdate: true,
  unconditionalUpdate: false,
  immutable: ['handler'],
  hidesImmutable: true,
  validate: (object, previous) => {
    object.requireName('handler', 'dns1123Label', previous ? undefined : 'bytes');
    const limits = object.in('overhead').value['podFixed'];
    validateAmounts(object.in('overhead').as({ limits }), validateContainerResourceName);
    const scheduling = object.in('scheduling');
    validateLabels(scheduling, 'nodeSelector');
    const known = new Set<string>();
    for (const toleration of scheduling.items('tolerations')) {
      validateToleration(toleration);
      const { tolerationSeconds: _, ...rest } = toleration.value;
      const key = goJson(rest);
      if (known.has(key)) toleration.duplicate('', goToleration(toleration));
      known.add(key);
    }
  },
  columns: columns(field('Handler', 'handler')),
  warnings: (object) => {
    const selector = object.in('scheduling').in('nodeSelector');
    return Object.keys(selector.value)
      .filter((key) => Object.hasOwn(NODE_LABELS, key))
      .map((key) => `${selector.path}: ${NODE_LABELS[key]}`);
  },
};

/** Returns a toleration with the names of upstream's fields in their order, which messages show. */
function goToleration(toleration: CheckedObject): Verbatim {
  const texts = ['Key', 'Operator', 'Value', 'Effect'].map(
    (field) => `"${field}":${goJson(toleration.text(field.toLowerCase()))}`,
  );
  const seconds = toleration.number('tolerationSeconds') ?? null;
  return new Verbatim(`{${texts.join(',')},"TolerationSeconds":${seconds}}`);
}
