import { HttpClient } from 'crd-controller';
import { COUNTS } from 'crd-controller/controllers';
import { ApiServer } from 'crd-controller/testing';

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
const missing = await client.list(COUNTS).catch((error: Error) => error.name);
console.log(COUNTS.plural, missing); // prints: counts ApiError
