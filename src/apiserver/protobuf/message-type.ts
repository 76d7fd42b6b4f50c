import { PROTOBUF } from '../generated/protobuf.ts';

/** A kind of message: its fields by number, in the order in which JSON has them. */
export interface MessageType {
  /** Package and name: `core.v1.Pod`. */
  readonly name: string;
  readonly fields: ReadonlyMap<number, Field>;
}

export interface Field {
  /** In JSON; undefined if the members of its value are members of the message itself. */
  readonly name: string | undefined;
  /** A map's keys are strings; `type` is that of its values. */
  readonly label: 'single' | 'list' | 'map';
  readonly type: Scalar | MessageReference;
  /** Left out of the JSON when it has Go's zero value. */
  readonly optional: boolean;
  /** Zero only when it is not on the wire. */
  readonly pointer: boolean;
}

export type Scalar = (typeof SCALARS)[number];

export interface MessageReference {
  readonly message: string;
}

const SCALARS = ['string', 'bytes', 'json', 'bool', 'int32', 'int64', 'double'] as const;

let types: ReadonlyMap<string, MessageType> | undefined;

/** The message of that name; undefined if no kind that the server has uses it. */
export function messageType(name: string): MessageType | undefined {
  types ??= new Map(
    PROTOBUF.trim()
      .split('\n\n')
      .map(parseMessage)
      .map((type) => [type.name, type]),
  );
  return types.get(name);
}

function parseMessage(section: string): MessageType {
  const [name = '', ...lines] = section.split('\n');
  return { name, fields: new Map(lines.map(parseField)) };
}

function parseField(line: string): [number: number, field: Field] {
  const [, number, name, optional, pointer, label, type = ''] =
    /^(\d+) ([^ ?]+)(\??) (\*?)((?:map)?\[\])?(.+)$/.exec(line) ?? [];
  const scalar = SCALARS.find((each) => each === type);
  return [
    Number(number),
    {
      name: name === '.' ? undefined : name,
      label: label === undefined ? 'single' : label === '[]' ? 'list' : 'map',
      type: scalar ?? { message: type },
      optional: optional === '?',
      pointer: pointer === '*',
    },
  ];
}
