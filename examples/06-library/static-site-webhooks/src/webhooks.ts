import { invalid, Webhooks } from 'crd-controller/webhook';
import { STATIC_SITES } from '../../static-site/src/generated/static-site.ts';

/** Annotation with the name of the user who created the object. */
const CREATED_BY = 'example.com/created-by';

/**
 * Functions that the API server calls before it stores a StaticSite. A condition that CEL can express is better in the
 * schema, or in `rules`: the API server then checks it also while the program does not run.
 */
export const webhooks = new Webhooks()
  .defaults(
    STATIC_SITES,
    ({ metadata }, { user }) => {
      metadata.annotations = { ...metadata.annotations, [CREATED_BY]: user.username };
    },
    { operations: ['CREATE'] },
  )
  .validates(STATIC_SITES, ({ metadata }, { old }) => {
    const creator = old?.metadata.annotations?.[CREATED_BY];
    if (creator === undefined || creator === metadata.annotations?.[CREATED_BY]) return [];
    return [invalid('metadata.annotations', `${CREATED_BY} must not change`)];
  });
