//! Makes small PDF files: each page has lines of text in Helvetica.

/// Renders a PDF 1.4 with these lines on each page. The lines are ASCII.
#[must_use]
pub fn render_pdf(pages: &[&[&str]]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for (number, lines) in pages.iter().enumerate() {
        let escape = |line: &&str| line.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
        let shown: String = lines.iter().map(|line| format!("({}) Tj T*\n", escape(line))).collect();
        let content = format!("BT /F1 12 Tf 14 TL 72 720 Td\n{shown}ET");
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            5 + 2 * number
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let (mut file, mut places) = ("%PDF-1.4\n".to_owned(), String::new());
    for (number, object) in objects.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", number + 1));
    }
    let (count, start) = (objects.len() + 1, file.len());
    file.push_str(&format!("xref\n0 {count}\n0000000000 65535 f \n{places}"));
    file.push_str(&format!("trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"));
    file.into_bytes()
}
