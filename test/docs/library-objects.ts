import { compareResourceVersions, covers, matchesLabels } from 'crd-controller/objects';
import { parseLabelSelector, setCondition } from 'crd-controller/objects';

console.log(compareResourceVersions('9', '10') < 0); // prints: true
console.log(covers({ replicas: 2, paused: false }, { replicas: 2 })); // prints: true
const selector = parseLabelSelector('app in (web, api), !canary');
console.log(matchesLabels(selector, { app: 'web' })); // prints: true
const ready = { type: 'Ready', status: 'True', reason: 'Done', message: '' } as const;
console.log(setCondition([], ready, 0).length); // prints: 1
