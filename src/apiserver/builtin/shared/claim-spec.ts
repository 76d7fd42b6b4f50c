import { compareQuantities, quantityNanos } from '../../../api/quantity.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { validateLabelSelector } from './label-selector-validation.ts';

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];

/** Reports what is wrong with the spec of a claim. */
export function validateClaimSpec(spec: CheckedObject): void {
  validateAccessModes(spec, 'at least 1 access mode is required');
  validateLabelSelector(spec.get('selector'));
  const size = spec.in('resources').in('requests').value['storage'];
  if (size === undefined) spec.required('resources[storage]');
  else if (typeof size === 'string' && compareQuantities(size, '0') <= 0) {
    spec.invalid('resources[storage]', 'must be greater than zero', size);
  }
  spec.requireFormat('storageClassName', 'dns1123Subdomain');
  requireVolumeMode(spec);
  validateDataSources(spec);
  spec.requireFormat('volumeAttributesClassName', 'dns1123Subdomain');
}

/** Also an empty mode is none. */
export function requireVolumeMode(spec: CheckedObject): void {
  const modes = ['Block', 'Filesystem'];
  if (!spec.has('volumeMode') || modes.includes(spec.text('volumeMode'))) return;
  spec.notSupported('volumeMode', modes);
}

function validateDataSources(spec: CheckedObject): void {
  const [source, ref] = [spec.get('dataSource'), spec.get('dataSourceRef')];
  for (const each of [source, ref]) {
    if (!each) continue;
    each.requireText('name');
    each.requireText('kind');
    const kind = each.text('kind');
    if (each.text('apiGroup') === '' && kind !== 'PersistentVolumeClaim') {
      const why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
      each.invalid('', why, kind);
    }
    each.requireFormat('apiGroup', 'dns1123Subdomain');
    if (each === ref) each.requireFormat('namespace', 'dns1123Label');
  }
  if (!source || !ref) return;
  const isSame = ['apiGroup', 'kind', 'name'].every(
    (field) => (source.value[field] ?? null) === (ref.value[field] ?? null),
  );
  if (ref.text('namespace') !== '') {
    spec.invalid('', 'may not be specified when dataSourceRef.namespace is specified', {});
  } else if (!isSame) spec.invalid('', 'must match dataSourceRef', {});
}

export function validateAccessModes(spec: CheckedObject, absent?: string): void {
  const modes = spec.list('accessModes');
  if (modes.length === 0) spec.required('accessModes', absent);
  for (const mode of modes) {
    if (typeof mode === 'string' && ACCESS_MODES.includes(mode)) continue;
    spec.notSupported('accessModes', ACCESS_MODES, mode);
  }
  const known = new Set(ACCESS_MODES.filter((mode) => modes.includes(mode)));
  if (known.has('ReadWriteOncePod') && known.size > 1) {
    spec.forbidden('accessModes', 'may not use ReadWriteOncePod with other access modes');
  }
}

/** An amount must not be negative. */
export function requireAmountOf(holder: CheckedObject, field: string, amount: string): void {
  const nanos = quantityNanos(amount) ?? 0n;
  if (nanos >= 0n) return;
  // As upstream, rounded away from zero.
  const value = Number((nanos - 999_999_999n) / 1_000_000_000n);
  holder.invalid(field, 'must be a valid resource quantity', value);
}
