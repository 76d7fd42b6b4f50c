import { Verbatim } from '../../../api/field-error.ts';
import { goJson } from '../../../util/go-format.ts';
import { listIn, objectIn, textsIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { column, columns } from '../../table/column.ts';
import { cidrProblem, parseCidr } from '../shared/addresses.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

export const SERVICE_CIDR: BuiltinKind = {
  resource: 'networking.k8s.io/servicecidrs',
  ...STATUS_ONLY,
  validate: validateRanges,
  columns: columns(
    column('CIDRs', 'Address ranges.', (object) =>
      textsIn(objectIn(object, 'spec') ?? {}, 'cidrs').join(','),
    ),
  ),
};

/** One range of each family; the second one may be added later. */
function validateRanges(object: CheckedObject, previous: StoredObject | undefined): void {
  const spec = object.in('spec');
  const ranges = spec.list('cidrs').map(String);
  const former = listIn(objectIn(previous, 'spec'), 'cidrs');
  const isGrown = former.length === 1 && ranges.length === 2;
  if (previous && former.length !== ranges.length && !isGrown) {
    spec.invalid('cidrs', 'field is immutable');
  } else {
    for (const [index, range] of former.entries()) {
      if (range === ranges[index]) continue;
      spec.invalid(`cidrs[${index}]`, 'field is immutable', ranges[index]);
    }
  }
  if (previous && !isGrown) return;
  if (ranges.length === 0) spec.required('cidrs', 'at least one CIDR required');
  else if (ranges.length > 2) {
    // The name of Go's field, which upstream shows.
    const shown = new Verbatim(`{"CIDRs":${goJson(ranges)}}`);
    spec.invalid('cidrs', 'may only hold up to 2 values', shown);
  } else {
    for (const [index, range] of ranges.entries()) {
      const problem = cidrProblem(range, true);
      if (problem !== undefined) spec.invalid(`cidrs[${index}]`, problem, range);
    }
    const [family, other] = ranges.map((range) => parseCidr(range)?.bits);
    if (family === undefined || family !== other) return;
    const why =
      'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64';
    spec.invalid('cidrs', why);
  }
}
