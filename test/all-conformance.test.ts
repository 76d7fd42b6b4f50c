/**
 * Runs conformance tests on the embedded server in one process, except those that take long; test:real runs them on
 * kube-apiserver, in one process for each file.
 */
import { FAST, importAll } from './support/import-all.ts';

await importAll('conformance', FAST);
