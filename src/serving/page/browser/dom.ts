/** Attribute of an element. A function is an event handler; `false` and undefined omit the attribute. */
type Value = string | number | boolean | undefined | ((event: Event) => void);

/** ElementAttributes by name. `key` identifies the element among its siblings. */
export type ElementAttributes = Readonly<Record<string, Value>>;

/** Description of an element, from which `render` creates or updates one. */
export interface Element_ {
  readonly tag: string;
  readonly attributes: ElementAttributes;
  readonly children: readonly (Element_ | string)[];
}

/** Content of an element. Strings become text, never markup. */
export type Content = Element_ | string | number | false | undefined | readonly Content[];

/** Describes an element. */
export function h(
  tag: string,
  attributes: ElementAttributes = {},
  ...content: Content[]
): Element_ {
  return { tag, attributes, children: flat(content) };
}

function flat(content: readonly Content[]): (Element_ | string)[] {
  return content.flatMap((one) => {
    if (one === false || one === undefined) return [];
    if (typeof one === 'object') return 'tag' in one ? [one] : flat(one);
    return [String(one)];
  });
}

const SVG = 'http://www.w3.org/2000/svg';

/** The description from which each node was made. */
const made = new WeakMap<Node, Element_>();

/**
 * Changes the children of `parent` to those described. Existing elements are reused, so focus, selection and
 * scroll positions stay.
 */
export function render(parent: Element, children: readonly (Element_ | string)[]): void {
  const keyed = new Map<Value, Node>();
  for (const node of parent.childNodes) {
    const key = made.get(node)?.attributes['key'];
    if (key !== undefined) keyed.set(key, node);
  }
  let next = parent.firstChild;
  for (const child of children) {
    const node = matching(child, next, keyed) ?? created(child, parent);
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
    update(node, child);
  }
  while (next) {
    const after: ChildNode | null = next.nextSibling;
    next.remove();
    next = after;
  }
}

function matching(
  child: Element_ | string,
  next: Node | null,
  keyed: ReadonlyMap<Value, Node>,
): Node | undefined {
  if (typeof child === 'string') return next?.nodeType === Node.TEXT_NODE ? next : undefined;
  const { tag, attributes } = child;
  const key = attributes['key'];
  const node = key === undefined ? next : keyed.get(key);
  const known = node && made.get(node);
  return node && known?.tag === tag && known.attributes['key'] === key ? node : undefined;
}

function created(child: Element_ | string, parent: Element): Node {
  if (typeof child === 'string') return document.createTextNode(child);
  const isSvg = child.tag === 'svg' || parent.namespaceURI === SVG;
  const element = isSvg
    ? document.createElementNS(SVG, child.tag)
    : document.createElement(child.tag);
  made.set(element, { tag: child.tag, attributes: {}, children: [] });
  return element;
}

function update(node: Node, child: Element_ | string): void {
  if (typeof child === 'string') {
    if (node.nodeValue !== child) node.nodeValue = child;
    return;
  }
  if (!(node instanceof Element)) return;
  const before = made.get(node)?.attributes ?? {};
  for (const name of Object.keys(before)) {
    if (!(name in child.attributes)) setAttribute(node, name, undefined);
  }
  for (const [name, value] of Object.entries(child.attributes)) {
    if (before[name] !== value) setAttribute(node, name, value);
  }
  made.set(node, child);
  render(node, child.children);
}

function setAttribute(element: Element, name: string, value: Value): void {
  if (name === 'key') return;
  if (name.startsWith('on')) Object.assign(element, { [name]: value ?? null });
  else if (name === 'value') {
    // A field that the user edits keeps its text.
    if (element !== document.activeElement) Object.assign(element, { value: value ?? '' });
  } else if (name === 'style') {
    // The policy of the page allows no attribute with this name, and the property.
    if (element instanceof HTMLElement) element.style.cssText = String(value ?? '');
  } else if (value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? '' : String(value));
}
