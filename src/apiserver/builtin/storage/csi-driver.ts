import { listIn, objectIn, objectsIn, textIn, textsIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { column, columns, flagColumn } from '../../table/column.ts';
import { validateTokenSeconds } from '../pods/pod-volumes.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const CSI_DRIVER: BuiltinKind = {
  resource: 'storage.k8s.io/csidrivers',
  returnsDeleted: true,
  unconditionalUpdate: false,
  immutable: ['spec.volumeLifecycleModes'],
  defaults: {
    'spec.attachRequired': true,
    'spec.podInfoOnMount': false,
    'spec.storageCapacity': false,
    'spec.fsGroupPolicy': 'ReadWriteOnceWithFSType',
    'spec.volumeLifecycleModes': ['Persistent'],
    'spec.requiresRepublish': false,
    'spec.seLinuxMount': false,
    'spec.preventPodSchedulingIfMissing': false,
  },
  hooks: {
    // As upstream, a new driver has no generation.
    prepareForUpdate: (driver, previous) => {
      if (equalJson(driver['spec'], previous['spec'])) return;
      driver.metadata.generation = (previous.metadata.generation ?? 0) + 1;
    },
  },
  validate: validateDriver,
  validateUpdate: (next, previous) => {
    const isAttached = next.in('spec').value['attachRequired'];
    if (isAttached === objectIn(previous, 'spec')?.['attachRequired']) return;
    // The path of upstream.
    next.in('spec').invalid('attachedRequired', 'field is immutable', isAttached);
  },
  columns: columns(
    flagColumn('AttachRequired', 'spec.attachRequired', true),
    flagColumn('PodInfoOnMount', 'spec.podInfoOnMount'),
    flagColumn('StorageCapacity', 'spec.storageCapacity'),
    column('TokenRequests', 'Audiences of the tokens that the driver needs.', (driver) => {
      const { tokenRequests } = objectIn(driver, 'spec') ?? {};
      if (!Array.isArray(tokenRequests)) return '<unset>';
      return objectsIn(objectIn(driver, 'spec') ?? {}, 'tokenRequests')
        .map((request) => textIn(request, 'audience'))
        .join(',');
    }),
    flagColumn('RequiresRepublish', 'spec.requiresRepublish'),
    column(
      'Modes',
      'Volume modes of the driver.',
      (driver) =>
        textsIn(objectIn(driver, 'spec') ?? {}, 'volumeLifecycleModes').join(',') || '<none>',
    ),
  ),
  warnings: (driver, previous) => {
    const spec = driver.in('spec');
    const requests = spec.list('tokenRequests');
    const isNew = !equalJson(requests, listIn(objectIn(previous, 'spec'), 'tokenRequests'));
    return isNew && requests.length > 0 && !spec.has(TOKENS_IN_SECRETS)
      ? [
          `spec.${TOKENS_IN_SECRETS} is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes`,
        ]
      : [];
  },
};

function validateDriver(driver: CheckedObject): void {
  const spec = driver.in('spec');
  spec.requireSupported('fsGroupPolicy', ['File', 'None', 'ReadWriteOnceWithFSType']);
  const audiences = new Set<string>();
  for (const request of spec.items('tokenRequests')) {
    const audience = request.text('audience');
    if (audiences.has(audience)) request.duplicate('audience', audience);
    else validateTokenSeconds(request);
    audiences.add(audience);
  }
  const modes = ['Persistent', 'Ephemeral'];
  for (const mode of spec.list('volumeLifecycleModes').map(String)) {
    if (!modes.includes(mode)) spec.notSupported('volumeLifecycleModes', modes, mode);
  }
  if ((spec.number(PERIOD) ?? 10) < 10) {
    spec.invalid(PERIOD, 'must be greater than or equal to 10 seconds');
  }
  if (spec.has(TOKENS_IN_SECRETS) && spec.list('tokenRequests').length === 0) {
    const why = `${TOKENS_IN_SECRETS} is set but no tokenRequests are specified`;
    spec.invalid(TOKENS_IN_SECRETS, why);
  }
}

const PERIOD = 'nodeAllocatableUpdatePeriodSeconds';

const TOKENS_IN_SECRETS = 'serviceAccountTokenInSecrets';
