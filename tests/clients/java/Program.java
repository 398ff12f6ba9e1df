// A program on the Java driver of today: sessions, transactions, retryable writes, bulk writes of the client. Its argument is a connection string. With the
// name of a user behind it, it only logs in and checks that it is that user.
import com.mongodb.ClientBulkWriteException;
import com.mongodb.MongoCommandException;
import com.mongodb.MongoException;
import com.mongodb.MongoNamespace;
import com.mongodb.ReadConcern;
import com.mongodb.TransactionOptions;
import com.mongodb.WriteConcern;
import com.mongodb.bulk.BulkWriteResult;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.ReplaceOneModel;
import com.mongodb.client.model.ReplaceOptions;
import com.mongodb.client.model.UpdateOneModel;
import com.mongodb.client.model.Updates;
import com.mongodb.client.model.bulk.ClientBulkWriteOptions;
import com.mongodb.client.model.bulk.ClientBulkWriteResult;
import com.mongodb.client.model.bulk.ClientNamespacedWriteModel;
import com.mongodb.client.model.bulk.ClientReplaceOneOptions;
import com.mongodb.client.model.bulk.ClientUpdateOneOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.bson.Document;

public final class Program {
    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 1) {
            login(arguments[0], arguments[1]);
            System.out.println("done");
            return;
        }
        try (MongoClient client = MongoClients.create(arguments[0])) {
            MongoDatabase db = client.getDatabase("java_" + System.nanoTime());
            commits(client, db);
            aborts(client, db);
            conflicts(client, db);
            counter(client, db);
            cursors(client, db);
            causality(client, db);
            retries(db);
            bulk(client, db);
            bulkFailures(client, db);
            bulkTransactions(client, db);
            db.drop();
        }
        System.out.println("done");
    }

    /** Checks that a client is this user, and that it may write and read. */
    private static void login(String address, String user) {
        try (MongoClient client = MongoClients.create(address)) {
            Document status = client.getDatabase("admin").runCommand(new Document("connectionStatus", 1));
            List<Document> users = status.get("authInfo", Document.class).getList("authenticatedUsers", Document.class);
            check(users.size() == 1 && users.get(0).getString("user").equals(user), "it is " + users);
            MongoCollection<Document> things = client.getDatabase("clients").getCollection("java_logins");
            things.insertOne(new Document("text", "x".repeat(100_000)));
            check(things.countDocuments() > 0, "what was written is there");
        }
    }

    private static void check(boolean holds, String text) {
        if (!holds) {
            throw new AssertionError(text);
        }
    }

    /** Writes to two collections, one of which the transaction creates, and reads its own writes. */
    private static void commits(MongoClient client, MongoDatabase db) {
        MongoCollection<Document> a = db.getCollection("a");
        MongoCollection<Document> b = db.getCollection("b");
        a.insertOne(new Document("_id", 1).append("n", 0));
        TransactionOptions concerns =
            TransactionOptions.builder().readConcern(ReadConcern.SNAPSHOT).writeConcern(WriteConcern.MAJORITY).build();
        try (ClientSession session = client.startSession()) {
            String result = session.withTransaction(() -> {
                a.updateOne(session, Filters.eq(1), Updates.inc("n", 1));
                b.insertMany(session, List.of(new Document("_id", 1), new Document("_id", 2)));
                check(b.countDocuments(session) == 2, "a transaction reads its own writes");
                check(b.countDocuments() == 0, "others do not");
                return "result";
            }, concerns);
            check(result.equals("result") && b.countDocuments() == 2, "the transaction is committed");
        }
    }

    private static void aborts(MongoClient client, MongoDatabase db) {
        MongoCollection<Document> a = db.getCollection("a");
        try (ClientSession session = client.startSession()) {
            try {
                session.withTransaction(() -> {
                    a.deleteMany(session, new Document());
                    throw new IllegalStateException("wrong");
                });
                check(false, "the exception is lost");
            } catch (IllegalStateException expected) {
                check(a.countDocuments() == 1, "the transaction is aborted");
            }
            // A session goes on after an abort, and the commit may be repeated.
            session.startTransaction();
            a.insertOne(session, new Document("_id", 2));
            session.commitTransaction();
            session.commitTransaction();
            check(a.countDocuments() == 2, "committed once");
        }
    }

    /** Two transactions update one document: the second is told to run again. */
    private static void conflicts(MongoClient client, MongoDatabase db) {
        MongoCollection<Document> documents = db.getCollection("conflicts");
        documents.insertOne(new Document("_id", 1));
        try (ClientSession first = client.startSession(); ClientSession second = client.startSession()) {
            first.startTransaction();
            second.startTransaction();
            documents.updateOne(first, Filters.eq(1), Updates.set("x", 1));
            try {
                documents.updateOne(second, Filters.eq(1), Updates.set("x", 2));
                check(false, "no conflict");
            } catch (MongoCommandException conflict) {
                check(conflict.getCode() == 112, "a write conflict");
                check(conflict.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL), "with its label");
            }
            first.commitTransaction();
            second.abortTransaction();
        }
    }

    /** Many clients increment one counter, each by a read and a write in a transaction. */
    private static void counter(MongoClient client, MongoDatabase db) throws Exception {
        MongoCollection<Document> counters = db.getCollection("counters");
        counters.insertOne(new Document("_id", 1).append("n", 0));
        ExecutorService threads = Executors.newFixedThreadPool(20);
        Callable<Void> increment = () -> {
            try (ClientSession session = client.startSession()) {
                session.withTransaction(() -> {
                    int found = counters.find(session, Filters.eq(1)).first().getInteger("n");
                    return counters.updateOne(session, Filters.eq(1), Updates.set("n", found + 1));
                });
            }
            return null;
        };
        for (Future<Void> ended : threads.invokeAll(java.util.Collections.nCopies(20, increment))) {
            ended.get();
        }
        threads.shutdown();
        check(counters.find().first().getInteger("n") == 20, "lost increments");
    }

    /** Reads a snapshot in several batches while others write. */
    private static void cursors(MongoClient client, MongoDatabase db) {
        MongoCollection<Document> many = db.getCollection("many");
        List<Document> documents = new ArrayList<>();
        for (int number = 0; number < 1000; number++) {
            documents.add(new Document("_id", number));
        }
        many.insertMany(documents);
        try (ClientSession session = client.startSession()) {
            session.startTransaction();
            int found = 0;
            try (MongoCursor<Document> cursor = many.find(session).batchSize(100).iterator()) {
                many.deleteMany(new Document());
                while (cursor.hasNext()) {
                    cursor.next();
                    found++;
                }
            }
            check(found == 1000, "the snapshot has all documents, not " + found);
            session.commitTransaction();
        }
        check(many.countDocuments() == 0, "the deletion stands");
    }

    private static void causality(MongoClient client, MongoDatabase db) {
        MongoCollection<Document> causal = db.getCollection("causal");
        try (ClientSession session = client.startSession()) {
            for (int number = 0; number < 50; number++) {
                causal.insertOne(session, new Document("_id", number));
                check(causal.countDocuments(session) == number + 1, "a session reads its writes");
            }
            check(session.getOperationTime() != null && session.getClusterTime() != null, "replies have their times");
        }
    }

    /** Writes of the kinds that the driver repeats after a lost connection. */
    private static void retries(MongoDatabase db) {
        MongoCollection<Document> writes = db.getCollection("writes");
        BulkWriteResult result = writes.bulkWrite(List.of(
            new InsertOneModel<>(new Document("_id", 1)),
            new UpdateOneModel<>(Filters.eq(1), Updates.set("x", 1)),
            new ReplaceOneModel<>(Filters.eq(2), new Document("x", 2), new ReplaceOptions().upsert(true)),
            new DeleteOneModel<>(Filters.eq(1))));
        check(result.getInsertedCount() == 1 && result.getModifiedCount() == 1, "inserts and updates");
        check(result.getUpserts().size() == 1 && result.getDeletedCount() == 1, "upserts and deletes");
        Document before = writes.findOneAndUpdate(Filters.eq(2), Updates.inc("x", 5));
        check(before.getInteger("x") == 2, "the document before the update");
    }

    private static ClientNamespacedWriteModel insert(MongoNamespace namespace, int id) {
        return ClientNamespacedWriteModel.insertOne(namespace, new Document("_id", id));
    }

    /** Writes to two collections by one request. */
    private static void bulk(MongoClient client, MongoDatabase db) {
        MongoNamespace a = new MongoNamespace(db.getName(), "bulk_a");
        MongoNamespace b = new MongoNamespace(db.getName(), "bulk_b");
        ClientBulkWriteResult result = client.bulkWrite(List.of(
            insert(a, 1), insert(a, 2), insert(b, 1),
            ClientNamespacedWriteModel.updateOne(a, new Document("_id", 2), Updates.set("last", true)),
            ClientNamespacedWriteModel.updateMany(a, new Document(), Updates.inc("x", 1)),
            ClientNamespacedWriteModel.replaceOne(
                b, Filters.eq(7), new Document("y", 1), ClientReplaceOneOptions.clientReplaceOneOptions().upsert(true)),
            ClientNamespacedWriteModel.deleteOne(b, Filters.eq(1))),
            ClientBulkWriteOptions.clientBulkWriteOptions().verboseResults(true));
        check(result.getInsertedCount() == 3 && result.getMatchedCount() == 3 && result.getModifiedCount() == 3, "inserts and updates");
        check(result.getUpsertedCount() == 1 && result.getDeletedCount() == 1, "upserts and deletes");
        ClientBulkWriteResult.VerboseResults each = result.getVerboseResults().get();
        check(each.getInsertResults().get(1).getInsertedId().get().asInt32().getValue() == 2, "the result of an insert");
        check(each.getUpdateResults().get(4).getModifiedCount() == 2, "the result of an update");
        check(each.getUpdateResults().get(5).getUpsertedId().get().asInt32().getValue() == 7, "the result of an upsert");
        check(db.getCollection("bulk_a").find(Filters.eq(2)).first().getBoolean("last"), "an update");
    }

    private static void bulkFailures(MongoClient client, MongoDatabase db) {
        for (boolean ordered : new boolean[] {true, false}) {
            MongoNamespace namespace = new MongoNamespace(db.getName(), "ordered_" + ordered);
            try {
                client.bulkWrite(List.of(insert(namespace, 1), insert(namespace, 1), insert(namespace, 2)),
                    ClientBulkWriteOptions.clientBulkWriteOptions().ordered(ordered));
                check(false, "no failure");
            } catch (ClientBulkWriteException failure) {
                check(failure.getWriteErrors().keySet().equals(java.util.Set.of(1)), "the second has failed");
                check(failure.getWriteErrors().get(1).getCode() == 11000, "a duplicate key");
                check(failure.getPartialResult().get().getInsertedCount() == (ordered ? 1 : 2), "the others are counted");
            }
        }
    }

    /** Commits results that are more than one batch of a cursor. */
    private static void bulkTransactions(MongoClient client, MongoDatabase db) {
        MongoNamespace namespace = new MongoNamespace(db.getName(), "upserts");
        db.createCollection("upserts");
        List<ClientNamespacedWriteModel> writes = new ArrayList<>();
        for (String letter : List.of("a", "b")) {
            writes.add(ClientNamespacedWriteModel.updateOne(namespace, Filters.eq(letter.repeat(8 << 20)), Updates.set("x", 1),
                ClientUpdateOneOptions.clientUpdateOneOptions().upsert(true)));
        }
        try (ClientSession session = client.startSession()) {
            session.startTransaction();
            ClientBulkWriteResult result = client.bulkWrite(
                session, writes, ClientBulkWriteOptions.clientBulkWriteOptions().verboseResults(true));
            check(result.getVerboseResults().get().getUpdateResults().size() == 2, "all results");
            check(db.getCollection("upserts").countDocuments() == 0, "others do not see them yet");
            session.commitTransaction();
        }
        check(db.getCollection("upserts").countDocuments() == 2, "committed");
    }
}
