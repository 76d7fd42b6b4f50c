import { options } from 'preact';
import { printableText } from '../../../util/printable.ts';
import { isRecord } from '../../../util/values.ts';

/**
 * Makes texts and tooltips show characters that control the direction of text, or that cannot be seen, as escapes: `\u202e`. The page
 * shows texts of others, and such a character makes one name look like another.
 */
export function showUnprintable(): void {
  options.vnode = (node: { readonly type: unknown; props: unknown }) => {
    // The properties of a text node are its text.
    if (typeof node.props === 'string') node.props = printableText(node.props);
    else if (isRecord(node.props) && typeof node.props['title'] === 'string')
      node.props['title'] = printableText(node.props['title']);
  };
}
