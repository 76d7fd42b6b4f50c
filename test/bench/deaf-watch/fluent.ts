/** kubernetes-fluent-client's watch with its defaults. */
import { K8s, kind } from 'kubernetes-fluent-client';
import { heard } from './heard.ts';

await K8s(kind.ConfigMap)
  .InNamespace('default')
  .Watch((configMap, phase: string) => {
    if (phase !== 'DELETED') heard(configMap);
  })
  .start();
