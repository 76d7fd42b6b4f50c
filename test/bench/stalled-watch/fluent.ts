/** The watch of kubernetes-fluent-client with its defaults. */
import { K8s, kind } from 'kubernetes-fluent-client';
import { printReceived } from './print-received.ts';

await K8s(kind.ConfigMap)
  .InNamespace('default')
  .Watch((configMap, phase: string) => {
    if (phase !== 'DELETED') printReceived(configMap);
  })
  .start();
