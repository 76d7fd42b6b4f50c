import { Controller, done } from 'crd-controller';
import { runProgram, textOption } from 'crd-controller/program';
import { PODS } from 'crd-controller/kinds';

await runProgram(
  {
    name: 'pod-watcher',
    version: '1.0.0',
    flags: { greeting: textOption({ help: 'Text before each name', default: 'Hello' }) },
    controllers: {
      pods: {
        resource: PODS,
        build: (kit, { greeting }) => {
          const pods = kit.informers.for(PODS);
          return new Controller(kit, {
            name: 'pods',
            kind: 'Pod',
            sync: async (key) => {
              console.log(`${greeting}, ${key}`);
              return done();
            },
          }).for(pods);
        },
      },
    },
    commands: [
      {
        name: 'greet',
        summary: 'Print a greeting',
        run: async (_, { print }) => {
          print('Hello'); // prints: Hello
          return 0;
        },
      },
    ],
  },
  ['greet'],
);
