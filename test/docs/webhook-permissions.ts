import { caBundleRules, certificateRules } from 'crd-controller/webhook';

console.log(certificateRules('backup-operator-webhook-certificate').map(({ verbs }) => verbs));
// prints: [ [ 'list', 'watch', 'update' ], [ 'create' ] ]
const targets = { validatingWebhookConfigurations: ['backup-operator'] };
console.log(caBundleRules(targets).map(({ resourceNames, verbs }) => [resourceNames, verbs]));
// prints: [ [ [ 'backup-operator' ], [ 'list', 'watch', 'patch' ] ] ]
