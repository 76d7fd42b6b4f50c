import { basename } from 'node:path';
import { parseDocument, visit } from 'yaml';
import type { Document, ToStringOptions } from 'yaml';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Part } from './parts.ts';
import { componentPiecesOf, piecesOf } from './pieces.ts';
import type { Piece, ReadFile } from './pieces.ts';

/** The namespace that the files are written for. */
const NAMESPACE = 'crd-controller-system';

/** What an installation is to be; absent: what the files say. */
export interface Wishes {
  /** Where the controller itself lives. */
  readonly namespace?: string | undefined;
  readonly image?: string | undefined;
  /** Where objects are looked after, with rights in these namespaces only. Empty: everywhere. */
  readonly namespaces?: readonly string[] | undefined;
  /** Those that run; `roles` finds what each needs. */
  readonly controllers?: readonly WantedController[] | undefined;
  /** Parts to print. Empty: all. */
  readonly only?: readonly Part[] | undefined;
}

export interface WantedController {
  readonly name: string;
  readonly resource: Resource;
  /** Its rights are not part of every installation. */
  readonly isOnByDefault: boolean;
}

const HEADER = '# Installation of crd-controller, printed by: crd-controller manifests\n';

/**
 * The manifests of an installation, as one YAML text. Each document that fits as it is is printed as
 * it was written, comments and all.
 *
 * @param read finds files below hack/deploy
 */
export function installation(read: ReadFile, wishes: Wishes = {}): string {
  const { controllers, namespaces = [], only = [] } = wishes;
  const pieces = wanted(read, piecesOf(read), controllers).filter(
    ({ path }) =>
      (only.length === 0 || only.some((part) => path.startsWith(`${part}/`))) &&
      // Whoever has rights in some namespaces alone cannot give any beyond them.
      (namespaces.length === 0 || !path.startsWith('rbac/metrics/')),
  );
  const edits = editsOf(wishes);
  const documents = pieces.flatMap((piece) => {
    const texts = piece.text.split(/^---\n/m);
    if (namespaces.length === 0 || !isRoleOfControllers(piece)) {
      return texts.map((text) => edited(text, edits));
    }
    // Events about the Lease are where the Lease is.
    const own = isEvents(piece) ? [wishes.namespace ?? NAMESPACE] : [];
    return [...new Set([...own, ...namespaces])].flatMap((namespace) =>
      texts.map((text) => edited(text, [...edits, within(namespace)])),
    );
  });
  return HEADER + documents.join('---\n');
}

/** Without what only other controllers need, and with what those need that are off by default. */
function wanted(
  read: ReadFile,
  pieces: readonly Piece[],
  controllers: readonly WantedController[] | undefined,
): readonly Piece[] {
  if (!controllers) return pieces;
  const names = new Set(controllers.map(({ name }) => `${name}.yaml`));
  const crds = new Set(controllers.map(({ resource }) => `${groupResourceOf(resource)}.yaml`));
  const extra = controllers
    .filter(({ isOnByDefault }) => !isOnByDefault)
    .flatMap(({ name }) => componentPiecesOf(read, `rbac/${name}`));
  const kept = pieces.filter(({ path }) => {
    if (path.startsWith('crds/')) return crds.has(basename(path));
    return !path.startsWith('rbac/controllers/') || names.has(basename(path));
  });
  const beforeEvents = kept.findIndex(isEvents);
  return kept.toSpliced(beforeEvents, 0, ...extra);
}

function isEvents({ path }: Piece): boolean {
  return path.startsWith('rbac/events/');
}

function isRoleOfControllers(piece: Piece): boolean {
  return piece.path.startsWith('rbac/controllers/') || isEvents(piece);
}

/** As the files are written. */
const FORMAT: ToStringOptions = { lineWidth: 0, flowCollectionPadding: false, singleQuote: true };

/** Changes a document. */
type Edit = (document: Document) => void;

/** As edits leave it; as it was written if they leave it alone. */
function edited(text: string, edits: readonly Edit[]): string {
  if (edits.length === 0) return text;
  const document = parseDocument(text);
  const asWritten = document.toString(FORMAT);
  for (const edit of edits) edit(document);
  const result = document.toString(FORMAT);
  return result === asWritten ? text : result;
}

function editsOf({ namespace, image, namespaces = [], controllers }: Wishes): Edit[] {
  const flags = [
    ...(controllers ? [`--controllers=${controllers.map(({ name }) => name).join(',')}`] : []),
    ...(namespaces.length > 0 ? [`--namespaces=${namespaces.join(',')}`] : []),
  ];
  return [
    ...(namespace === undefined ? [] : [livingIn(namespace)]),
    ...(image === undefined && flags.length === 0 ? [] : [running(image, flags)]),
  ];
}

function livingIn(namespace: string): Edit {
  return (document) =>
    visit(document, {
      Scalar: (_, scalar) => {
        if (scalar.value === NAMESPACE) scalar.value = namespace;
      },
    });
}

function running(image: string | undefined, flags: readonly string[]): Edit {
  const container = ['spec', 'template', 'spec', 'containers', 0];
  return (document) => {
    if (document.get('kind') !== 'Deployment') return;
    if (image !== undefined) document.setIn([...container, 'image'], image);
    for (const flag of flags) document.addIn([...container, 'args'], flag);
  };
}

/** A ClusterRole, or its binding, as a Role in one namespace. */
function within(namespace: string): Edit {
  return (document) => {
    const kind = String(document.get('kind'));
    document.set('kind', kind.replace(/^Cluster/, ''));
    document.setIn(['metadata', 'namespace'], namespace);
    if (document.has('roleRef')) document.setIn(['roleRef', 'kind'], 'Role');
  };
}
