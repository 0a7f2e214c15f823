import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import java.util.StringJoiner;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.authenticator.CredentialCache;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerExtensionsValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslServer;
import org.apache.kafka.common.security.plain.PlainAuthenticateCallback;
import org.apache.kafka.common.security.plain.internals.PlainSaslServer;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;
import org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;

/** The SASL servers of Kafka's brokers, asked by lines on stdin: one answer a line. See kafka_server.py. */
class KafkaServer {
    static SaslServer server;

    public static void main(String[] args) {
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ", -1);
            try {
                System.out.println(answer(question));
            } catch (Exception e) {
                System.out.println("error " + e.toString().replace('\n', ' '));
            }
            System.out.flush();
        }
    }

    static String answer(String[] question) throws Exception {
        switch (question[0]) {
            case "PLAIN" -> server = plain(text(question[1]), text(question[2]));
            case "OAUTHBEARER" -> server = oauth(text(question[1]));
            case "response" -> {
                byte[] challenge = server.evaluateResponse(HexFormat.of().parseHex(question[1]));
                String said = HexFormat.of().formatHex(challenge == null ? new byte[0] : challenge);
                return said + " " + (server.isComplete() ? hex(server.getAuthorizationID()) : "");
            }
            case "jaas" -> {
                return jaas(text(question[1]));
            }
            default -> server = scram(question[0], text(question[1]), text(question[2]), question[3].equals("true"));
        }
        return "ready";
    }

    static SaslServer plain(String username, String password) {
        return new PlainSaslServer(callbacks -> {
            String name = null;
            for (Callback callback : callbacks) {
                if (callback instanceof NameCallback c) name = c.getDefaultName();
                if (callback instanceof PlainAuthenticateCallback c)
                    c.authenticated(username.equals(name) && password.equals(new String(c.password())));
            }
        });
    }

    static SaslServer scram(String mechanism, String username, String password, boolean token) throws Exception {
        ScramCredential credential =
            new ScramFormatter(ScramMechanism.forMechanismName(mechanism)).generateCredential(password, 8192);
        CredentialCache.Cache<ScramCredential> users = new CredentialCache.Cache<>(ScramCredential.class);
        DelegationTokenCache tokens = new DelegationTokenCache(ScramMechanism.mechanismNames());
        if (token) {
            KafkaPrincipal owner = new KafkaPrincipal("User", "owner");
            long end = Long.MAX_VALUE;
            tokens.addToken(username, new TokenInformation(username, owner, owner, Set.of(), 0, end, end));
            tokens.credentialCache(mechanism).put(username, credential);
        } else {
            users.put(username, credential);
        }
        ScramServerCallbackHandler handler = new ScramServerCallbackHandler(users, tokens);
        handler.configure(Map.of(), mechanism, List.of());
        return new ScramSaslServer(ScramMechanism.forMechanismName(mechanism), Map.of(), handler);
    }

    static SaslServer oauth(String accepted) {
        return new OAuthBearerSaslServer(new Handler(accepted));
    }

    /** Accepts one token, and every extension. */
    record Handler(String accepted) implements org.apache.kafka.common.security.auth.AuthenticateCallbackHandler {
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {}
        public void close() {}
        public void handle(Callback[] callbacks) {
            for (Callback callback : callbacks) {
                if (callback instanceof OAuthBearerExtensionsValidatorCallback c)
                    c.inputExtensions().map().keySet().forEach(c::valid);
                if (callback instanceof OAuthBearerValidatorCallback c) {
                    if (accepted.equals(c.tokenValue())) c.token(new Token(accepted));
                    else c.error("invalid_token", null, null);
                }
            }
        }
    }

    record Token(String value) implements OAuthBearerToken {
        public Set<String> scope() { return Set.of(); }
        public long lifetimeMs() { return Long.MAX_VALUE; }
        public String principalName() { return "owner"; }
        public Long startTimeMs() { return null; }
    }

    static String jaas(String config) {
        JaasContext context = JaasContext.loadClientContext(Map.of(SaslConfigs.SASL_JAAS_CONFIG, new Password(config)));
        AppConfigurationEntry entry = context.configurationEntries().get(0);
        StringJoiner found = new StringJoiner(" ").add(hex(entry.getLoginModuleName()));
        entry.getOptions().forEach((name, value) -> found.add(hex(name) + "=" + hex(value.toString())));
        return found.toString();
    }

    static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }

    static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
