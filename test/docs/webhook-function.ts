import { ApiServer } from 'crd-controller/testing';

export const server = new ApiServer({
  webhooks: {
    // The URL of a Service is https://NAME.NAMESPACE.svc/PATH.
    'https://my-webhook.my-system.svc/validate': ({ object }) => ({
      allowed: object !== null,
      status: { message: 'not allowed' },
    }),
  },
});
