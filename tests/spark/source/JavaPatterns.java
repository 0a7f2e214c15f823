import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.regex.Pattern;

/** Of each line, a pattern in base 64 and texts: 1 for each text in which it is found, else 0. */
class JavaPatterns {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    private static String answer(String[] words) {
        byte[] pattern = Base64.getDecoder().decode(words[0]);
        StringBuilder found = new StringBuilder();
        try {
            Pattern compiled = Pattern.compile(new String(pattern, StandardCharsets.UTF_8));
            for (int i = 1; i < words.length; i++) {
                found.append(compiled.matcher(words[i]).find() ? '1' : '0');
            }
        } catch (RuntimeException | StackOverflowError e) {
            return "error " + e.getMessage().replace('\n', ' ').replace('\r', ' ');
        }
        return found.toString();
    }
}
