import type { ObjectReport, ObjectsReport, FoundObject } from '../../object-page.ts';
import { CONDITIONS, countText, moment } from '../../words.ts';
import { ConditionLine, ObjectCards } from './key.tsx';
import { TONES } from './results.ts';
import { linkTo, linkToKey } from './route.ts';
import type { Route } from './route.ts';
import { Badge, Cut, TableCard } from './table.tsx';
import type { Column } from './table.tsx';

/** Objects that a search found, or the objects of a resource. */
export function ObjectsView(props: {
  readonly report: ObjectsReport | undefined;
  readonly route: Route;
  readonly nowMs: number;
}) {
  const { report, route, nowMs } = props;
  if (!report) return <p class="state">Loading the objects…</p>;
  const { text = '', resource = '' } = route.query;
  const { count, objects } = report;
  const what = [resource, text && `with “${text}” in their names`].filter(Boolean).join(' ');
  const shown = count > objects.length ? `, of which ${objects.length} are listed` : '';
  return (
    <div class="cards">
      <TableCard
        class="full"
        caption={`${countText(count, 'object')}${shown}: ${what}`}
        columns={columnsOf(route, nowMs)}
        rows={objects}
        keyOf={({ resource, key }) => `${resource} ${key}`}
        nothing="No object was found."
      />
    </div>
  );
}

function columnsOf({ query }: Route, nowMs: number): readonly Column<FoundObject>[] {
  return [
    {
      title: 'Object',
      class: 'wide',
      cell: ({ kind, resource, key }) => (
        <a href={linkTo('object', { in: query['in'], resource, key })} title={key}>
          {kind} {key}
        </a>
      ),
    },
    {
      title: 'Condition',
      cell: ({ state }) =>
        state === 'unknown' ? (
          '–'
        ) : (
          <Badge tone={TONES[state] ?? 'neutral'} text={CONDITIONS[state]} />
        ),
    },
    {
      title: 'Since',
      class: 'number spare',
      cell: ({ since }) => (since === undefined ? '–' : moment(since, nowMs)),
    },
    {
      title: 'Message',
      class: 'wide spare',
      cell: ({ message }) => <Cut text={message} dir="auto" />,
    },
    {
      title: 'Synced as',
      class: 'spare',
      cell: ({ owner }) =>
        owner ? (
          <a href={linkToKey(owner.controller, owner.key)}>
            {owner.controller} {owner.key}
          </a>
        ) : (
          '–'
        ),
    },
  ];
}

/** View of one object. */
export function ObjectView(props: {
  readonly report: ObjectReport | undefined;
  readonly route: Route;
  readonly nowMs: number;
}) {
  const { report, route, nowMs } = props;
  const { resource = '', key: name = '', in: place } = route.query;
  return (
    <>
      <h2 class="key" dir="auto">
        {resource} {name}
      </h2>
      <div class="cards">
        {report?.owner && (
          <p class="full">
            It is synced as{' '}
            <a href={linkToKey(report.owner.controller, report.owner.key)}>
              {report.owner.controller} {report.owner.key}
            </a>
            .
          </p>
        )}
        <ConditionLine report={report} nowMs={nowMs} />
        <ObjectCards report={report} place={place} />
      </div>
    </>
  );
}

/** Returns the only key to which the found objects belong. Objects with exactly this name or key count before others. */
export function keyOfFound({ objects }: ObjectsReport, text: string): FoundObject['owner'] {
  const isExact = ({ key }: FoundObject) => key === text || key.endsWith(`/${text}`);
  const exact = objects.filter(isExact);
  const [first, ...others] = (exact.length > 0 ? exact : objects).map(({ owner }) => owner);
  const isSame = (owner: FoundObject['owner']) =>
    owner?.controller === first?.controller && owner?.key === first?.key;
  return first && others.every(isSame) ? first : undefined;
}
