import { utf8Length } from '../../../util/bytes.ts';
import { nameProblems } from '../../../api/object-names.ts';
import { columns, field, flagColumn } from '../../table/column.ts';
import { validateInlineVolumeSpec } from '../core/volume-spec.ts';
import { requireDriverName } from '../pods/volume-sources.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

/** In bytes. */
const MAX_METADATA = 256 * 1024;

const NAME = 'persistentVolumeName';

export const VOLUME_ATTACHMENT: BuiltinKind = {
  resource: 'storage.k8s.io/volumeattachments',
  revalidatesName: 'object and status',
  ...STATUS_ONLY,
  returnsDeleted: true,
  unconditionalUpdate: false,
  immutable: ['spec'],
  hidesImmutable: true,
  validate: (attachment, previous) => {
    const spec = attachment.in('spec');
    // As upstream, whose declared rules do not see the parts of an immutable field that changed.
    requireDriverName(spec, 'attacher', previous ? 'dns1123Subdomain' : 'dns1123SubdomainCaseless');
    const source = spec.in('source');
    const [isInline, isNamed] = [source.has('inlineVolumeSpec'), source.has(NAME)];
    const why = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
    if (!isInline && !isNamed) spec.required('source', why);
    else if (isInline && isNamed) spec.forbidden('source', why);
    else if (isNamed && source.text(NAME) === '') {
      source.required(NAME, 'must specify non empty persistentVolumeName');
    } else if (isInline) validateInlineVolumeSpec(source.in('inlineVolumeSpec'));
    if (isNamed) source.problems(NAME, nameProblems(source.text(NAME), 'dns1123Subdomain'));
    const node = spec.text('nodeName');
    spec.problems('nodeName', nameProblems(node, 'dns1123Subdomain'), node);
    const status = attachment.in('status');
    const pairs = Object.entries(status.in('attachmentMetadata').value);
    if (pairs.reduce((sum, pair) => sum + utf8Length(pair.join('')), 0) > MAX_METADATA) {
      status.tooLong('attachmentMetadata', MAX_METADATA);
    }
    for (const field of ['attachError', 'detachError']) {
      const error = status.in(field);
      if (utf8Length(error.text('message')) > 1024) error.tooLong('message', 1024);
      if ((error.number('errorCode') ?? 0) >= 0) continue;
      error.invalid('errorCode', 'must be between 0 and 2147483647, inclusive');
    }
  },
  columns: columns(
    field('Attacher', 'spec.attacher', '', { format: 'name' }),
    field('PV', 'spec.source.persistentVolumeName'),
    field('Node', 'spec.nodeName'),
    flagColumn('Attached', 'status.attached'),
  ),
};
