import { createRegistry, expose, metricsOf } from 'crd-controller/metrics';

const registry = createRegistry();
const metrics = metricsOf(registry);
metrics.events.dropped('spam');
const { text } = await expose(registry);
console.log(text.includes('crd_controller_events_dropped_total{reason="spam"} 1')); // prints: true
