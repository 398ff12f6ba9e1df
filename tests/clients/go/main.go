// A program on the Go driver of today: sessions, transactions, retryable writes, bulk writes of the client. Its argument is a
// connection string. With the name of a user behind it, it only logs in and checks that it is that user.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

var ctx = context.Background()

func main() {
	client, err := mongo.Connect(options.Client().ApplyURI(os.Args[1]).SetServerSelectionTimeout(10 * time.Second))
	must(err)
	if len(os.Args) > 2 {
		login(client, os.Args[2])
		return
	}
	db := client.Database(fmt.Sprintf("go_%d", time.Now().UnixNano()))
	commits(client, db)
	aborts(client, db)
	conflicts(client, db)
	counter(client, db)
	cursors(client, db)
	causality(client, db)
	retries(db)
	bulk(client, db)
	bulkFailures(client, db)
	bulkTransactions(client, db)
	must(db.Drop(ctx))
	must(client.Disconnect(ctx))
	fmt.Println("done")
}

// login checks that the client is this user, and that it may write and read.
func login(client *mongo.Client, user string) {
	var status struct {
		AuthInfo struct {
			AuthenticatedUsers []struct{ User, Db string } `bson:"authenticatedUsers"`
		} `bson:"authInfo"`
	}
	must(client.Database("admin").RunCommand(ctx, bson.D{{Key: "connectionStatus", Value: 1}}).Decode(&status))
	users := status.AuthInfo.AuthenticatedUsers
	check(len(users) == 1 && users[0].User == user, fmt.Sprintf("it is %v", users))
	things := client.Database("clients").Collection("go_logins")
	_, err := things.InsertOne(ctx, bson.D{{Key: "text", Value: strings.Repeat("x", 100_000)}})
	must(err)
	check(count(ctx, things) > 0, "what was written is there")
	must(client.Disconnect(ctx))
	fmt.Println("done")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, text string) {
	if !holds {
		panic(text)
	}
}

func count(ctx context.Context, collection *mongo.Collection) int64 {
	number, err := collection.CountDocuments(ctx, bson.D{})
	must(err)
	return number
}

// commits writes to two collections, one of which the transaction creates, and reads its own writes.
func commits(client *mongo.Client, db *mongo.Database) {
	a, b := db.Collection("a"), db.Collection("b")
	_, err := a.InsertOne(ctx, bson.D{{"_id", 1}, {"n", 0}})
	must(err)
	session, err := client.StartSession()
	must(err)
	defer session.EndSession(ctx)
	concerns := options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())
	result, err := session.WithTransaction(ctx, func(inside context.Context) (any, error) {
		if _, err := a.UpdateByID(inside, 1, bson.D{{"$inc", bson.D{{"n", 1}}}}); err != nil {
			return nil, err
		}
		if _, err := b.InsertMany(inside, []bson.D{{{"_id", 1}}, {{"_id", 2}}}); err != nil {
			return nil, err
		}
		check(count(inside, b) == 2, "a transaction reads its own writes")
		check(count(ctx, b) == 0, "others do not")
		return "result", nil
	}, concerns)
	must(err)
	check(result == "result" && count(ctx, b) == 2, "the transaction is committed")
}

func aborts(client *mongo.Client, db *mongo.Database) {
	wrong := errors.New("wrong")
	session, err := client.StartSession()
	must(err)
	defer session.EndSession(ctx)
	_, err = session.WithTransaction(ctx, func(inside context.Context) (any, error) {
		_, err := db.Collection("a").DeleteMany(inside, bson.D{})
		must(err)
		return nil, wrong
	})
	check(errors.Is(err, wrong) && count(ctx, db.Collection("a")) == 1, "the transaction is aborted")
	// A session goes on after an abort, and the commit may be repeated.
	must(session.StartTransaction())
	inside := mongo.NewSessionContext(ctx, session)
	_, err = db.Collection("a").InsertOne(inside, bson.D{{"_id", 2}})
	must(err)
	must(session.CommitTransaction(ctx))
	must(session.CommitTransaction(ctx))
	check(count(ctx, db.Collection("a")) == 2, "committed once")
}

// conflicts has two transactions update one document: the second is told to run again.
func conflicts(client *mongo.Client, db *mongo.Database) {
	documents := db.Collection("conflicts")
	_, err := documents.InsertOne(ctx, bson.D{{"_id", 1}})
	must(err)
	first, err := client.StartSession()
	must(err)
	defer first.EndSession(ctx)
	second, err := client.StartSession()
	must(err)
	defer second.EndSession(ctx)
	must(first.StartTransaction())
	must(second.StartTransaction())
	set := bson.D{{"$set", bson.D{{"x", 1}}}}
	_, err = documents.UpdateByID(mongo.NewSessionContext(ctx, first), 1, set)
	must(err)
	_, err = documents.UpdateByID(mongo.NewSessionContext(ctx, second), 1, set)
	var failure mongo.ServerError
	check(errors.As(err, &failure) && failure.HasErrorCode(112), fmt.Sprint("a write conflict: ", err))
	check(failure.HasErrorLabel("TransientTransactionError"), "with its label")
	must(first.CommitTransaction(ctx))
	must(second.AbortTransaction(ctx))
}

// counter has many clients increment one counter, each by a read and a write in a transaction.
func counter(client *mongo.Client, db *mongo.Database) {
	counters := db.Collection("counters")
	_, err := counters.InsertOne(ctx, bson.D{{"_id", 1}, {"n", 0}})
	must(err)
	var clients sync.WaitGroup
	for range 20 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			must(client.UseSession(ctx, func(inside context.Context) error {
				session := mongo.SessionFromContext(inside)
				_, err := session.WithTransaction(inside, func(inside context.Context) (any, error) {
					var found struct{ N int }
					if err := counters.FindOne(inside, bson.D{{"_id", 1}}).Decode(&found); err != nil {
						return nil, err
					}
					return counters.UpdateByID(inside, 1, bson.D{{"$set", bson.D{{"n", found.N + 1}}}})
				})
				return err
			}))
		}()
	}
	clients.Wait()
	var found struct{ N int }
	must(counters.FindOne(ctx, bson.D{{"_id", 1}}).Decode(&found))
	check(found.N == 20, fmt.Sprint("lost increments: ", found.N))
}

// cursors reads a snapshot in several batches while others write.
func cursors(client *mongo.Client, db *mongo.Database) {
	many := db.Collection("many")
	documents := make([]bson.D, 1000)
	for number := range documents {
		documents[number] = bson.D{{"_id", number}}
	}
	_, err := many.InsertMany(ctx, documents)
	must(err)
	must(client.UseSession(ctx, func(inside context.Context) error {
		must(mongo.SessionFromContext(inside).StartTransaction())
		cursor, err := many.Find(inside, bson.D{}, options.Find().SetBatchSize(100))
		must(err)
		_, err = many.DeleteMany(ctx, bson.D{})
		must(err)
		var found []bson.D
		must(cursor.All(inside, &found))
		check(len(found) == 1000, fmt.Sprint("the snapshot has all documents, not ", len(found)))
		return mongo.SessionFromContext(inside).CommitTransaction(inside)
	}))
	check(count(ctx, many) == 0, "the deletion stands")
}

func causality(client *mongo.Client, db *mongo.Database) {
	session, err := client.StartSession(options.Session().SetCausalConsistency(true))
	must(err)
	defer session.EndSession(ctx)
	inside := mongo.NewSessionContext(ctx, session)
	for number := range 50 {
		_, err := db.Collection("causal").InsertOne(inside, bson.D{{"_id", number}})
		must(err)
		check(count(inside, db.Collection("causal")) == int64(number+1), "a session reads its writes")
	}
	check(session.OperationTime() != nil && session.ClusterTime() != nil, "replies have their times")
}

// retries makes writes of the kinds that the driver repeats after a lost connection.
func retries(db *mongo.Database) {
	writes := db.Collection("writes")
	models := []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.D{{"_id", 1}}),
		mongo.NewUpdateOneModel().SetFilter(bson.D{{"_id", 1}}).SetUpdate(bson.D{{"$set", bson.D{{"x", 1}}}}),
		mongo.NewReplaceOneModel().SetFilter(bson.D{{"_id", 2}}).SetReplacement(bson.D{{"x", 2}}).SetUpsert(true),
		mongo.NewDeleteOneModel().SetFilter(bson.D{{"_id", 1}}),
	}
	result, err := writes.BulkWrite(ctx, models)
	must(err)
	check(result.InsertedCount == 1 && result.ModifiedCount == 1 && result.UpsertedCount == 1 && result.DeletedCount == 1, "a bulk write")
	var before struct{ X int }
	must(writes.FindOneAndUpdate(ctx, bson.D{{"_id", 2}}, bson.D{{"$inc", bson.D{{"x", 5}}}}).Decode(&before))
	check(before.X == 2, "the document before the update")
}

// inserts are models of the client's bulk write, one for each _id.
func inserts(db *mongo.Database, collection string, ids ...int) []mongo.ClientBulkWrite {
	var models []mongo.ClientBulkWrite
	for _, id := range ids {
		model := mongo.NewClientInsertOneModel().SetDocument(bson.D{{"_id", id}})
		models = append(models, mongo.ClientBulkWrite{Database: db.Name(), Collection: collection, Model: model})
	}
	return models
}

// bulk writes to two collections by one request.
func bulk(client *mongo.Client, db *mongo.Database) {
	model := func(collection string, model mongo.ClientWriteModel) mongo.ClientBulkWrite {
		return mongo.ClientBulkWrite{Database: db.Name(), Collection: collection, Model: model}
	}
	all, new := bson.D{}, bson.D{{"_id", 7}}
	last := mongo.NewClientUpdateOneModel().SetFilter(all).SetUpdate(bson.D{{"$set", bson.D{{"last", true}}}})
	writes := append(inserts(db, "bulk_a", 1, 2), inserts(db, "bulk_b", 1)...)
	writes = append(writes,
		model("bulk_a", last.SetSort(bson.D{{"_id", -1}})),
		model("bulk_a", mongo.NewClientUpdateManyModel().SetFilter(all).SetUpdate(bson.D{{"$inc", bson.D{{"x", 1}}}})),
		model("bulk_b", mongo.NewClientReplaceOneModel().SetFilter(new).SetReplacement(bson.D{{"y", 1}}).SetUpsert(true)),
		model("bulk_b", mongo.NewClientDeleteOneModel().SetFilter(bson.D{{"_id", 1}})))
	result, err := client.BulkWrite(ctx, writes, options.ClientBulkWrite().SetVerboseResults(true))
	must(err)
	sums := []int64{result.InsertedCount, result.MatchedCount, result.ModifiedCount, result.UpsertedCount, result.DeletedCount}
	check(fmt.Sprint(sums) == "[3 3 3 1 1]", fmt.Sprint("sums: ", sums))
	check(fmt.Sprint(result.InsertResults[1].InsertedID) == "2" && result.UpdateResults[4].ModifiedCount == 2, "results of each write")
	check(fmt.Sprint(result.UpdateResults[5].UpsertedID) == "7", fmt.Sprint("upsert: ", result.UpdateResults[5].UpsertedID))
	var found struct{ Last bool }
	must(db.Collection("bulk_a").FindOne(ctx, bson.D{{"_id", 2}}).Decode(&found))
	check(found.Last, "the last by the order is updated")
}

func bulkFailures(client *mongo.Client, db *mongo.Database) {
	for _, ordered := range []bool{true, false} {
		collection := fmt.Sprint("ordered_", ordered)
		_, err := client.BulkWrite(ctx, inserts(db, collection, 1, 1, 2), options.ClientBulkWrite().SetOrdered(ordered))
		var failure mongo.ClientBulkWriteException
		check(errors.As(err, &failure) && len(failure.WriteErrors) == 1, fmt.Sprint("one failure: ", err))
		check(failure.WriteErrors[1].Code == 11000, fmt.Sprint("of the second: ", failure.WriteErrors))
		expected := map[bool]int64{true: 1, false: 2}[ordered]
		check(count(ctx, db.Collection(collection)) == expected, "an ordered bulk write ends with its failure")
	}
}

// bulkTransactions commits results that are more than one batch of a cursor.
func bulkTransactions(client *mongo.Client, db *mongo.Database) {
	upserts := db.Collection("upserts")
	must(db.CreateCollection(ctx, "upserts"))
	var writes []mongo.ClientBulkWrite
	for _, letter := range []string{"a", "b"} {
		id := bson.D{{"_id", strings.Repeat(letter, 8<<20)}}
		model := mongo.NewClientUpdateOneModel().SetFilter(id).SetUpdate(bson.D{{"$set", bson.D{{"x", 1}}}}).SetUpsert(true)
		writes = append(writes, mongo.ClientBulkWrite{Database: db.Name(), Collection: "upserts", Model: model})
	}
	must(client.UseSession(ctx, func(inside context.Context) error {
		must(mongo.SessionFromContext(inside).StartTransaction())
		result, err := client.BulkWrite(inside, writes, options.ClientBulkWrite().SetVerboseResults(true))
		must(err)
		check(result.UpsertedCount == 2 && len(result.UpdateResults) == 2, "all results")
		check(count(ctx, upserts) == 0, "others do not see them yet")
		return mongo.SessionFromContext(inside).CommitTransaction(inside)
	}))
	check(count(ctx, upserts) == 2, "committed")
}
