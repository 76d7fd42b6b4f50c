/**
 * Runs conformance tests on the embedded server in one process; test:real runs them on kube-apiserver, in one
 * process for each file.
 */
import { importAll } from './support/import-all.ts';

await importAll('conformance');
