import { Controller, done } from 'crd-controller';
import { runDaemon, textOption } from 'crd-controller/daemon';
import { PODS } from 'crd-controller/kinds';

await runDaemon(
  {
    name: 'pod-watcher',
    version: '1.0.0',
    flags: { greeting: textOption({ help: 'Text before each name', default: 'Hello' }) },
    controllers: {
      pods: {
        resource: PODS,
        build: (kit, { namespaces, concurrency, flags }) => {
          const pods = kit.informers.for(PODS, { namespaces });
          return new Controller(kit, {
            name: 'pods',
            kind: 'Pod',
            concurrency,
            sync: async (key) => {
              console.log(`${flags.greeting}, ${key}`);
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
