import { NAME_COLUMN, column } from '../../table/column.ts';
import { disabledTemplateFields } from '../pods/disabled-fields.ts';
import { applyTemplateDefaults } from '../pods/pod-defaults.ts';
import { podWarnings } from '../pods/pod-warnings.ts';
import { containerColumns } from '../pods/template-columns.ts';
import { validatePodTemplate } from '../pods/template-validation.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { labelsText } from '../shared/cells.ts';

export const POD_TEMPLATE: BuiltinKind = {
  resource: 'podtemplates',
  tracksGeneration: true,
  returnsDeleted: true,
  disabledFields: disabledTemplateFields('template'),
  hooks: { applyDefaults: applyTemplateDefaults },
  validate: (object) => validatePodTemplate(object.in('template')),
  columns: [
    NAME_COLUMN,
    ...containerColumns(['template'], 0),
    column('Pod Labels', 'Labels of the template.', (object) =>
      labelsText(object, ['template', 'metadata', 'labels']),
    ),
  ],
  warnings: (template) => podWarnings(template.in('template')),
};
