package blobstor

import "context"

// PutBatch stores the items, each durable when its Err is nil, and fills Location and Err of each. Items succeed
// or fail alone; the result is the error of the first item that failed. Without [Batcher] it puts one by one.
// When ctx ends midway, the items that were not yet stored bear its error.
func PutBatch(ctx context.Context, s Storage, items []Item) error {
	if b, ok := s.(Batcher); ok {
		return b.PutBatch(ctx, items)
	}
	return eachItem(ctx, "put", items, func(it *Item) (err error) {
		it.Location, err = s.Put(ctx, it.Address, it.Data)
		return err
	})
}

// DeleteBatch removes the blobs of the items, each durably when its Err is nil, and fills Err of each; Location
// is a hint, as always. It reports errors as [PutBatch] does; the Err of a missing blob is ErrNotFound.
func DeleteBatch(ctx context.Context, s Storage, items []Item) error {
	if b, ok := s.(Batcher); ok {
		return b.DeleteBatch(ctx, items)
	}
	return eachItem(ctx, "delete", items, func(it *Item) error {
		return s.Delete(ctx, it.Address, it.Location)
	})
}

// eachItem does one item after the other, asking ctx first.
func eachItem(ctx context.Context, op string, items []Item, do func(*Item) error) error {
	for i := range items {
		it := &items[i]
		if it.Err = Wrap(op, it.Address, it.Location, ctx.Err()); it.Err == nil {
			it.Err = do(it)
		}
	}
	return firstErr(items)
}

// refuseItems fails all items with err, and a batch without items too.
func refuseItems(op string, items []Item, err error) error {
	if len(items) == 0 {
		return Wrap(op, Address{}, "", err)
	}
	return eachItem(context.Background(), op, items, func(it *Item) error {
		return Wrap(op, it.Address, it.Location, err)
	})
}

func firstErr(items []Item) error {
	for i := range items {
		if items[i].Err != nil {
			return items[i].Err
		}
	}
	return nil
}
