/** Runs the operator. `--help` prints the commands and flags. */
import { runProgram, textOption } from 'crd-controller/program';
import { DNS_RECORDS, dnsRecordController } from './dns-record.ts';

await runProgram({
  name: 'dns-record-operator',
  version: '1.0.0',
  flags: {
    service: textOption({
      help: 'URL of the DNS service, with a final slash',
      default: 'http://127.0.0.1:8053/',
    }),
  },
  controllers: {
    'dns-record': {
      resource: DNS_RECORDS,
      build: dnsRecordController,
    },
  },
});
