import { objectIn, setDefault } from '../../util/json-value.ts';
import { checked } from '../objects/checked-object.ts';
import type { KindTraits } from './definition.ts';
import { applyTemplateDefaults } from './pod-defaults.ts';
import { validateTemplate } from './template-validation.ts';
import { WORKLOAD_SCALE, validateReplicaStatus, validateSameSelector } from './workload.ts';

export const REPLICA_SET: KindTraits = {
  scale: WORKLOAD_SCALE,
  tracksGeneration: true,
  hooks: {
    applyDefaults: (set) => {
      const spec = objectIn(set, 'spec');
      if (!spec) return;
      setDefault(spec, 'replicas', 1);
      applyTemplateDefaults(spec);
    },
    validate: checked((set) => {
      const spec = set.in('spec');
      spec.requireNonNegative('replicas', 'minReadySeconds');
      validateTemplate(spec, 'ReplicaSet');
      const parts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];
      validateReplicaStatus(set, parts);
    }),
    validateUpdate: checked(validateSameSelector),
  },
};
