import { openShop, type Shop } from './shop.js';

describe('the shop, in one process without Redis', () => {
  let shop: Shop;

  beforeAll(async () => {
    shop = await openShop({ WORK_MS: 1 });
  });

  afterAll(async () => {
    expect(await shop.close()).toBe(0);
  });

  it('sells one apple to who says nothing', async () => {
    await shop.put('/stock/apple', { units: 3 });
    expect(await shop.post('/reduceStock')).toEqual({ status: 200, body: { sku: 'apple', sold: true, left: 2 } });
    expect(await shop.post('/reduceStock', { units: 2 })).toEqual({ status: 200, body: { sku: 'apple', sold: true, left: 0 } });
  });

  it.each(['none', 'local', 'naive', 'lock'])('answers that it is sold out, which is no error, with version "%s"', async (version) => {
    await shop.put('/stock/pear', { units: 1 });
    const reduce = (units: number) => shop.post(`/stock/${version}/reduce`, { sku: 'pear', units });
    expect(await reduce(2)).toEqual({ status: 200, body: { sku: 'pear', sold: false, left: 1 } });
    expect(await reduce(1)).toEqual({ status: 200, body: { sku: 'pear', sold: true, left: 0 } });
    expect(await reduce(1)).toEqual({ status: 200, body: { sku: 'pear', sold: false, left: 0 } });
  });

  it.each([
    [{ sku: '' }, 'sku must match'],
    [{ sku: 'no spaces' }, 'sku must match'],
    [{ sku: null }, 'sku must match'],
    [{ sku: { $ne: 'apple' } }, 'sku must match'],
    [{ units: 0 }, 'units must not be less than 1'],
    [{ units: 1.5 }, 'units must be an integer number'],
    [{ units: '1' }, 'units must be an integer number'],
    [{ units: 1_001 }, 'units must not be greater than 1000'],
    [{ price: 1 }, 'property price should not exist'],
  ])('answers 400 to %j', async (body, reason) => {
    const answer = await shop.post('/reduceStock', body);
    expect(answer).toMatchObject({ status: 400, body: { message: expect.arrayContaining([expect.stringContaining(reason)]) } });
  });

  it('answers 400 where the version or the SKU in the path is none', async () => {
    expect(await shop.post('/stock/best/reduce', { sku: 'apple' })).toMatchObject({ status: 400 });
    expect(await shop.put('/stock/APPLE', { units: 1 })).toMatchObject({ status: 400 });
    expect(await shop.put('/stock/apple', { units: -1 })).toMatchObject({ status: 400 });
  });

  it('answers 404 where it does not have the SKU: the error of a locked method comes through', async () => {
    expect(await shop.post('/reduceStock', { sku: 'unicorn' })).toMatchObject({ status: 404 });
  });
});
